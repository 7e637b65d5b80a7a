/**
 * Servers that are not Leasehold, are malicious or become unreachable: each command reports it and always exits. `run`
 * keeps the program's exit code.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { runScript } from './run-fixture.ts';

const ASKING = { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };
const NO_LEASEHOLD =
  /^leasehold: [^\n]*(?:is not Leasehold|the response is invalid)[^\n]*\.\n {2}The address came from LEASEHOLD_ADDR\./;

async function lie(scope: Scope, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  scope.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const inJson = (body: unknown): RequestListener => {
  return (_, answer) => answer.setHeader('content-type', 'application/json').end(JSON.stringify(body));
};

const ESCAPE = '\u001b]0;taken\u0007\u001b[2J';

const LINES = [
  'agent delete a --yes',
  'agent list',
  'agent show a',
  'approve list',
  'approve show a',
  'approve a --yes',
  'audit checkpoint',
  'audit list',
  'audit receipt 1',
  'audit tail',
  'audit verify',
  'delete a --yes',
  'exposure --agent-name a',
  'get a --reveal',
  'history a',
  'key slot list',
  'lease list',
  `lease renew ${randomUUID()}`,
  `lease show ${randomUUID()}`,
  'list',
  'operator add a --role viewer --invite',
  'operator invite a',
  'operator list',
  'operator show a',
  'panic --yes',
  'policy delete p --yes',
  'policy explain a retrieve b',
  'policy list',
  'policy show p',
  'put a -',
  'status',
  'target show a',
  'use a GET https://a.example/',
  'whoami',
];

/** A socket that answers every request with these bytes. */
async function lieOnSocket(scope: Scope, bytes: string): Promise<string> {
  const path = join(temporaryDirectory(scope), 'l.sock');
  const server = createSocketServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end(bytes, 'latin1'));
  }).listen(path);
  await new Promise((resolve) => server.once('listening', resolve));
  scope.after(() => new Promise((resolve) => server.close(resolve)));
  return `unix:${path}`;
}

const BODY = 'content-type: application/json\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{"data":55}';

const HEADS = [
  ...[101, 199, 204, 205, 304, 600, 700, 999].map((status) => `HTTP/1.1 ${status} Odd\r\n`),
  'HTTP/1.1 101 Odd\r\nupgrade: x\r\nconnection: upgrade\r\n',
  'HTTP/1.1 200 OK\r\nx-odd: \u00ff\u0080\r\n__proto__: x\r\nset-cookie: \r\n',
  'HTTP/1.1 200 OK\r\nx odd: x\r\n',
  'HTTP/1.1 200 OK\r\nx-odd: \u0000\r\n',
  'no HTTP\r\n',
];

type Row = Record<string, unknown>;
const words = ['id', 'timestamp', 'event_type', 'agent_name', 'resource', 'action', 'result', 'hmac'];
const nulls = ['policy_name', 'lease_id', 'code', 'reason', 'request_id', 'remote_addr'];
const others = Object.fromEntries([...words.map((word) => [word, 'x']), ...nulls.map((word) => [word, null])]);

interface Query {
  readonly limit: number;
  readonly offset: number;
  readonly until: string | null;
}

/** A server whose lists are the pages that the function makes. */
async function answer(scope: Scope, toPage: (query: Query) => { data: readonly Row[]; total: number }) {
  let pages = 0;
  const address = await lie(scope, (asked, response) => {
    pages += 1;
    const query = new URL(asked.url ?? '', 'http://x').searchParams;
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))];
    const { data, total } = toPage({ limit, offset, until: query.get('until') });
    response.end(JSON.stringify({ data, meta: { total, limit, offset } }));
  });
  return { home: newHome(scope, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: 'lha_x' }), pages: () => pages };
}

const falling = (at: number, limit: number): Row => ({ ...others, seq: limit - at });

const ENDLESS: readonly [line: string, toRow: (at: number, limit: number) => Row, says: RegExp, most: number][] = [
  ['audit list --limit 100', () => ({ ...others, seq: 1 }), /not in order/, 1],
  ['audit list --limit 5000', falling, /the audit log has no last page/, 2],
  ['audit tail', () => ({ ...others, seq: 7 }), /not in order/, 1],
  ['audit tail', () => others, /not in order/, 1],
  ['audit tail', (at, limit) => (limit === 10 ? falling(at, limit) : { ...others, seq: at + 1 }), /not in order/, 3],
];

/** It issues leases on one path, and rejects every other request, including revocations. */
const lender = createServer((request, response) => {
  const isLent = request.method === 'GET' && request.url?.includes('/lent') === true;
  response.writeHead(isLent ? 200 : 403, { 'content-type': 'application/json' });
  const lent = { path: 'prod/lent', value: 'a value to keep', lease_id: 'one', expires_at: '2099-01-01T00:00:00.000Z' };
  const error = { code: 'ACCESS_DENIED', message: `no ${ESCAPE}` };
  response.end(JSON.stringify(isLent ? { data: lent } : { error }));
});

await new Promise<void>((resolve) => lender.listen(0, '127.0.0.1', resolve));
after(() => lender.close());

const borrower = newHome(
  { after },
  { LEASEHOLD_ADDR: `http://127.0.0.1:${(lender.address() as AddressInfo).port}`, LEASEHOLD_TOKEN: 'lha_of-nobody' },
);

function assertHarmless(stderr: string, lines: number): void {
  assert.match(stderr, /no \\u001b\]0;taken/);
  assert.equal(stderr.trimEnd().split('no \\u001b').length - 1, lines, stderr);
  for (const control of ESCAPE.match(/\p{Cc}/gu) ?? []) assert.equal(stderr.includes(control), false);
}

test('each command reports a response without its data, and exits with 2', async (t) => {
  const home = newHome(t, { ...ASKING, LEASEHOLD_ADDR: await lie(t, inJson({ data: {} })) });
  for (const line of LINES) {
    const { code, stdout, stderr } = await home.leasehold(line.split(' '), { input: 'x' });
    assert.match(stderr, NO_LEASEHOLD, line);
    assert.deepEqual([code, stdout], [2, ''], line);
  }
});

test('fields of other names and types are never a stack, a usage error or a control of the terminal', async (t) => {
  const texts = { note: ESCAPE, verifier_key: ESCAPE, receipt: ESCAPE, code: ESCAPE, expires_at: ESCAPE };
  for (const data of [{ [ESCAPE]: 1, ...texts }, [{ name: 1, path: ESCAPE }]]) {
    const address = await lie(t, inJson({ data }));
    const home = newHome(t, { ...ASKING, LEASEHOLD_ADDR: address });
    for (const line of LINES) {
      const { code, stdout, stderr } = await home.leasehold(line.split(' '), { columns: 200, input: 'x' });
      assert.notEqual(code, 1, line);
      assert.doesNotMatch(stdout + stderr, /(?!\n)\p{Cc}|\n +at /u, line);
      if (line !== 'whoami') continue;
      const problem = 'A response cannot be read, or this is a bug: TypeError: Cannot read properties of undefined';
      const where = /^ \(reading 'startsWith'\) \(src\/core\/names\.ts:\d+\)\.\n {2}Check what answers at (\S+) /;
      assert.ok(stderr.startsWith(`leasehold: ${problem}`), stderr);
      assert.deepEqual([where.exec(stderr.slice(`leasehold: ${problem}`.length))?.[1], code], [address, 2], stderr);
    }
  }
});

test('a socket that responds with anything else is reported as not Leasehold', async (t) => {
  for (const head of HEADS) {
    const home = newHome(t, { ...ASKING, LEASEHOLD_ADDR: await lieOnSocket(t, head + BODY) });
    const { code, stdout, stderr } = await home.leasehold(['status']);
    assert.match(stderr, /^leasehold: [^\n]*\.\n {2}The address came from LEASEHOLD_ADDR\. [^\n]*\n$/, head);
    assert.deepEqual([code, stdout], [2, ''], head);
  }
});

test('a token that is not a valid header value is reported with its source', async (t) => {
  const home = newHome(t, { LEASEHOLD_TOKEN: 'abc def', LEASEHOLD_ADDR: 'http://127.0.0.1:7700' });
  const { code, stderr } = await home.leasehold(['list']);
  assert.equal(code, 1);
  assert.match(stderr, /^leasehold: LEASEHOLD_TOKEN: must be visible ASCII characters, without spaces/);
  assert.doesNotMatch(stderr, /abc|7700/);
});

test('a question with the name of a key slot has no control of the terminal', async (t) => {
  const address = await lie(t, inJson({ data: [{ name: ESCAPE, kind: 'shamir', parameters: {} }] }));
  const unlocking = newHome(t).onTerminal(['unlock', '--address', address]);
  await unlocking.shows(/Share of the key slot \\u001b\]0;taken/);
  assert.equal(unlocking.screen().includes(ESCAPE), false);
  unlocking.type('no share\r');
  assert.equal((await unlocking.ended).exitCode, 1);
});

test('a log of several pages is complete and newest first while it grows', async (t) => {
  let newest = 2200;
  const toEntry = (seq: number): Row => ({ ...others, seq, timestamp: new Date(seq * 1000).toISOString() });
  const { home } = await answer(t, ({ limit, offset, until }) => {
    newest += 7;
    const last = until === null ? newest : Date.parse(until) / 1000;
    const length = Math.max(0, Math.min(limit, last - offset));
    return { total: last, data: Array.from({ length }, (_, at) => toEntry(last - offset - at)) };
  });
  for (const limit of [1001, 100_000]) {
    const { code, stdout, stderr } = await home.leasehold(`audit list --limit ${limit} --field seq`.split(' '));
    assert.deepEqual([code, stderr], [0, '']);
    const numbers = stdout.trimEnd().split('\n').map(Number);
    const [first = 0] = numbers;
    assert.ok(first > 2200);
    assert.deepEqual(
      numbers,
      Array.from({ length: Math.min(limit, first) }, (_, at) => first - at),
    );
  }
});

test('an endless list of pages is rejected', async (t) => {
  for (const [line, toRow, says, most] of ENDLESS) {
    const { home, pages } = await answer(t, ({ limit }) => ({
      total: 5,
      data: Array.from({ length: limit }, (_, at) => toRow(at, limit)),
    }));
    const { code, stderr } = await home.leasehold(line.split(' '));
    assert.match(stderr, says);
    assert.deepEqual([code, pages() <= most], [2, true], `${line}: ${pages()} pages`);
  }
});

test('rejections, and the reason why a lease was not revoked, are printed without terminal controls', async () => {
  const rejected = await runScript(borrower, ['--env', 'A=prod/a', '--env', 'B=prod/b'], 'true');
  assert.equal(rejected.code, 2);
  assertHarmless(rejected.stderr, 2);
  const { code, stderr } = await runScript(borrower, ['--env', 'A=prod/lent'], 'true');
  assert.equal(code, 0);
  assert.match(stderr, /1 of 1 leases were not revoked/);
  assertHarmless(stderr, 1);
});

test('a server that became unreachable is reported at the end, and the program’s exit code is kept', async () => {
  const [ready, go] = ['ready', 'go'].map((name) => join(borrower.path, name));
  const script = 'echo >"$HOME/ready"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; exit 4';
  const running = runScript(borrower, ['--env', 'A=prod/lent'], script);
  await until(() => existsSync(ready ?? ''));
  lender.closeAllConnections();
  await new Promise((resolve) => lender.close(resolve));
  writeFileSync(go ?? '', '');
  const { code, stderr } = await running;
  assert.equal(code, 4);
  assert.match(stderr, /^leasehold: 1 of 1 leases were not revoked and will expire: no response from /);
});
