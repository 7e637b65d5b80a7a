// No request data appears in an error, the server log or the audit log, and no secret is stored in plaintext.
// SOURCE: decisions, "HTTP"; security, P4, P9 and "Secrets echoed by error texts and debug modes" (CVE-2025-4166,
// CVE-2024-8365).

import assert from 'node:assert/strict';
import { randomBytes, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { createClient, readAgentKey } from '../kit/client.ts';
import { findBytes } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { addOperator } from '../kit/operators.ts';
import { startProcess } from '../kit/process.ts';
import { sendRaw } from '../kit/raw.ts';
import { scaled } from '../kit/scale.ts';

const dataDir = join(temporaryDirectory({ after }), 'data');
const service = await startProcess({ after }, dataDir, ['--log-level', 'debug']);
const admin = createClient(service.address, service.adminToken);
const anonymous = createClient(service.address, null);

await admin.post('/api/v1/agents', { name: 'insider' });
const issued = (await anonymous.post('/auth/challenge', { agent_name: 'insider' })).body.data;
const key = readAgentKey(dataDir, 'insider');
const signature = sign(null, Buffer.from(issued.nonce, 'base64'), key).toString('base64');
const proof = { challenge_id: issued.challenge_id, agent_name: 'insider', signature };
const session: string = (await anonymous.post('/auth/verify', proof)).body.data.session_id;

/** `npm test` sends one request in seven: seven divides the number of rows of no route. */
const STEP = scaled(7, 1);
const CALLERS: Readonly<Record<string, string | null>> = { nobody: null, insider: session, admin: service.adminToken };
const exportLog = async () => (await admin.get('/api/v1/audit/export')).text;
const found = (text: string) => findBytes(dataDir, text);

/** A unique marker that is found in any letter case. */
const newMark = () => `mk${randomBytes(8).toString('hex')}`;
const has = (text: string, mark: string) => text.toLowerCase().includes(mark);

interface Marked {
  readonly line: string;
  readonly headers?: readonly string[];
  readonly host?: string;
  readonly authorization?: string;
  readonly type?: string;
  readonly body?: string;
}

/** Requests with the marker in one part each, so that no rejection hides another. */
function requestsWith(mark: string): Marked[] {
  const bad = `${mark}\u0001\u00e9`;
  const inHeaders = [
    'User-Agent',
    'Cookie',
    'Referer',
    'Origin',
    'Accept',
    'X-Request-Id',
    'X-Forwarded-For',
    'If-None-Match',
    'Idempotency-Key',
  ];
  const inBodies = [
    mark,
    `"${mark}"`,
    `{"${mark}":1}`,
    `{"a":"${mark}`,
    `{"${mark}":1,"${mark}":2}`,
    `{"__proto__":"${mark}"}`,
    `[["${mark}"]]`,
    `{"\\ud800${mark}":1}`,
    `\ufeff{"${mark}":1}`,
    `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"${mark}":1}}}}}}}}}`,
  ];
  const overTheTable = ROUTES.flatMap(({ method, path, query, body, acceptsIdempotencyKey }): Marked[] => {
    const plain = path.replaceAll(/\{\w+\}/g, 'insider');
    const fields = Object.keys(body?.properties ?? {});
    const values = [bad, `${mark}*`, [bad], { [mark]: mark }, [[mark]]];
    return [
      ...[`${mark}%20`, `${mark}%01`, `${mark}%zz`, `..%2f${mark}`, mark.repeat(40)].map((part) => ({
        line: `${method} ${path.replaceAll(/\{\w+\}/g, part)}${path.includes('{') ? '' : `/${part}`} HTTP/1.1`,
      })),
      ...[
        `${mark}=1`,
        `a=${mark}`,
        `${mark}=1&${mark}=2`,
        ...Object.keys(query.properties).map((name) => `${name}=${mark}%01`),
      ].map((text) => ({ line: `${method} ${plain}?${text} HTTP/1.1` })),
      ...inBodies.map((text) => ({ line: `${method} ${plain} HTTP/1.1`, type: 'application/json', body: text })),
      ...fields.flatMap((field) =>
        values.map((value) => ({
          line: `${method} ${plain} HTTP/1.1`,
          type: 'application/json',
          body: JSON.stringify({ [field]: value, [mark]: mark }),
        })),
      ),
      ...fields.flatMap((field) =>
        values.map((value) => ({
          line: `${method} ${plain} HTTP/1.1`,
          type: 'application/json',
          body: JSON.stringify({ ...Object.fromEntries(fields.map((name) => [name, bad])), [field]: value }),
        })),
      ),
      { line: `${method} ${plain} HTTP/1.1`, type: `text/${mark}`, body: mark },
      { line: `${method} ${plain} HTTP/1.1`, type: `application/json;${mark}`, body: mark },
      { line: `${method} ${plain} HTTP/1.1`, host: `${mark}.example` },
      { line: `${method} ${plain} HTTP/1.1`, host: `user:${mark}@localhost` },
      { line: `${method} ${plain} HTTP/1.1`, authorization: `Bearer lhs_${mark}` },
      { line: `${method} ${plain} HTTP/1.1`, authorization: `${mark} ${mark}` },
      { line: `${method} ${plain}?a HTTP/1.1`, headers: inHeaders.map((name) => `${name}: ${mark}`) },
      ...(acceptsIdempotencyKey
        ? [{ line: `${method} ${plain} HTTP/1.1`, headers: [`Idempotency-Key: ${mark} ${mark}`] }]
        : []),
      { line: `${method} ${plain}?a HTTP/1.1`, headers: [`X-${mark}: ${mark}`, `X-Long: ${mark.repeat(200)}`] },
    ];
  });
  return [
    ...overTheTable,
    { line: `${mark} / HTTP/1.1` },
    { line: `GET ${mark} HTTP/1.1` },
    { line: `GET http://${mark}/ HTTP/1.1` },
    { line: `GET /${mark} HTTP/${mark}` },
    { line: `PATCH /${mark} HTTP/1.1` },
    { line: `PATCH /api/v1/credentials/${mark} HTTP/1.1` },
    { line: 'GET / HTTP/1.1', headers: [`${mark} : ${mark}`] },
    { line: 'GET / HTTP/1.1', headers: [`X: ${mark}\u0000`] },
    { line: 'GET / HTTP/1.1', headers: [`X: ${mark.repeat(2000)}`] },
    { line: `GET /${mark.repeat(600)} HTTP/1.1` },
    { line: 'POST /auth/verify HTTP/1.1', headers: [`Transfer-Encoding: ${mark}`], body: mark },
    { line: 'POST /auth/verify HTTP/1.1', headers: ['Transfer-Encoding: chunked'], body: `${mark}\r\n${mark}` },
  ];
}

function bytesOf(
  { line, headers = [], host = 'localhost', authorization, type, body = '' }: Marked,
  token: string | null,
): Buffer {
  const shown = authorization ?? (token === null ? null : `Bearer ${token}`);
  const isFramed = headers.some((header) => header.startsWith('Transfer-Encoding'));
  const lines = [
    line,
    `Host: ${host}`,
    'Connection: close',
    ...headers,
    ...(shown === null ? [] : [`Authorization: ${shown}`]),
    ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    ...(isFramed || body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

for (const [caller, token] of Object.entries(CALLERS)) {
  test(`no part of a rejected request is stored, logged or returned (sent by ${caller})`, async () => {
    const mark = newMark();
    const requests = requestsWith(mark).filter((_, at) => at % STEP === 0);
    const statuses = new Set<number>();
    while (requests.length > 0) {
      const batch = requests.splice(0, 16);
      const answers = await Promise.all(batch.map((request) => sendRaw(service.address, bytesOf(request, token))));
      for (const [index, { status, head, body }] of answers.entries()) {
        statuses.add(status);
        assert.equal(status < 500, true, `${status} for ${batch[index]?.line}`);
        assert.equal(has(head, mark) || has(body, mark), false, `${batch[index]?.line}: ${head} ${body}`);
      }
    }
    assert.equal(statuses.has(400) && statuses.has(401) && statuses.has(421), true, [...statuses].join());
    assert.equal(has(await exportLog(), mark), false);
    assert.equal(has(service.output(), mark), false);
    assert.deepEqual(await found(mark), []);
  });
}

test('rejected requests are logged, so the absence of their data is meaningful', () => {
  const lines = service
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'));
  assert.equal(lines.length > 20, true);
  const logged = lines.map((line) => JSON.parse(line));
  const codes = new Set(logged.map(({ code }) => code));
  assert.equal(codes.has('INVALID_REQUEST'), true, [...codes].join());
  const { status, request_id, method, remote_addr } = logged.find(({ code }) => code === 'UNAUTHENTICATED');
  assert.deepEqual([status, typeof request_id, typeof method, remote_addr], [401, 'string', 'string', '127.0.0.1']);
});

test("a use of the administrator's token next to operators is logged once, without the token", async () => {
  await addOperator({ address: service.address, admin }, 'boss', ['admin']);
  for (let n = 0; n < 3; n++) assert.equal((await admin.get('/api/v1/agents')).status, 200);
  const uses = () =>
    service
      .output()
      .split('\n')
      .filter((line) => line.includes('operator.break_glass'));
  await until(async () => uses().length > 0);
  assert.equal(uses().length, 1);
  assert.equal(uses()[0]?.includes('lha_'), false);
});

test('a value appears only in the response to its retrieval', async () => {
  const mark = newMark();
  await admin.post('/api/v1/credentials', { path: 'a/value', value: mark, type: 'token', description: 'd' });
  assert.equal((await admin.get('/api/v1/credentials/a/value')).body.data.value, mark);
  const looks = ['', '/a/value?view=metadata', '?limit=1'].map((rest) => `/api/v1/credentials${rest}`);
  for (const target of [...looks, '/api/v1/leases', '/api/v1/audit?limit=1000', '/api/v1/audit/export']) {
    const answer = await admin.get(target);
    assert.equal(answer.status, 200, target);
    assert.equal(answer.text.includes(mark), false, target);
  }
  assert.equal(service.output().includes(mark), false);
  assert.deepEqual(await found(mark), []);
});

test('the audit log, the server log and the database hold no token, nonce, signature or private key', async () => {
  const pem = readFileSync(join(dataDir, 'agents/insider/private_key.pem'), 'utf8').split('\n')[1] ?? '';
  const secrets = { session, nonce: issued.nonce, signature, pem, admin: service.adminToken };
  const log = await exportLog();
  const printed = service
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .join('\n');
  for (const [what, secret] of Object.entries(secrets)) {
    assert.equal(log.includes(secret) || printed.includes(secret), false, what);
    const homes = { admin: ['daemon.token'], pem: ['private_key.pem'] }[what] ?? [];
    assert.deepEqual(
      (await found(secret)).map((path) => path.split('/').at(-1)),
      homes,
      what,
    );
  }
});
