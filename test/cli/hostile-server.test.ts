/**
 * Servers that are not Leasehold or are malicious: each command reports it in one line, exits with 2, and always exits.
 */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';

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

const READS = ['list', 'policy list', 'policy explain a retrieve b', 'agent list', 'lease list', 'audit list'];
const CHANGES = ['delete a --yes', 'agent delete a --yes', 'policy delete p --yes'];
/** Data of another kind than the commands expect. */
const ANSWERS: readonly [data: unknown, lines: readonly string[]][] = [
  [[null], READS],
  [null, [...READS, 'history a', 'policy show p', 'agent show a', 'audit tail', 'audit verify', 'whoami', 'get a']],
  [{}, [...READS, ...CHANGES]],
];

test('each command reports a response without its data, and exits with 2', async (t) => {
  for (const [data, lines] of ANSWERS) {
    const home = newHome(t, { ...ASKING, LEASEHOLD_ADDR: await lie(t, inJson({ data })) });
    for (const line of lines) {
      const { code, stdout, stderr } = await home.leasehold(line.split(' '));
      assert.match(stderr, NO_LEASEHOLD, `${line}: ${JSON.stringify(data)}`);
      assert.deepEqual([code, stdout], [2, ''], line);
    }
  }
});

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
