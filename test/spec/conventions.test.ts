// Rules for every request and response. SOURCE: docs/api.md, "Conventions"; docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { type RawResponse, rawRequest, sendRaw } from '../kit/raw.ts';
import { assertHeaders, assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';

const service = await startTestService({ after });
const { admin, anonymous, address } = service;
const auth = `Authorization: Bearer ${service.adminToken}`;
const raw = (lines: string[], body = ''): Promise<RawResponse> => sendRaw(address, rawRequest(lines, body));
const codeOf = ({ body }: RawResponse) => JSON.parse(body).error.code;
/** Stores with this Content-Type. */
const storeAs = (type: string | null, body = '{"path":"typed/a","value":"v"}') =>
  raw(
    [
      `POST ${CREDENTIALS} HTTP/1.1`,
      'Host: localhost',
      auth,
      ...(type === null ? [] : [`Content-Type: ${type}`]),
      `Content-Length: ${Buffer.byteLength(body)}`,
    ],
    body,
  );

test('every response has a unique X-Request-Id, no-store and nosniff', async () => {
  const answers = [
    await admin.get('/api/v1/agents'),
    await anonymous.get('/api/v1/health'),
    await anonymous.get('/openapi.json'),
    await anonymous.get('/api/v1/agents'),
    await admin.get('/no/such/address'),
    await admin.get('/api/v1/agents?bad=1'),
    await admin.call('PATCH', '/api/v1/agents'),
    await admin.get('/api/v1/audit/export'),
  ];
  for (const answer of answers) assertHeaders(answer);
  assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, answers.length);
});

test('responses to unparsable requests carry the same headers', async () => {
  for (const [bytes, status] of [
    ['GET\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ] as const) {
    const answer = await sendRaw(address, bytes);
    assert.equal(answer.status, status);
    for (const header of [
      /^x-request-id: \S+$/im,
      /^cache-control: no-store$/im,
      /^x-content-type-options: nosniff$/im,
    ]) {
      assert.match(answer.head, header);
    }
    assert.equal(codeOf(answer), status === 431 ? 'HEADERS_TOO_LARGE' : 'INVALID_REQUEST');
  }
});

test('no CORS: an Origin changes nothing, and a preflight is 405', async () => {
  const origin = { origin: 'https://evil.example' };
  assertHeaders(await admin.call('GET', '/api/v1/agents', undefined, origin));
  const preflight = await anonymous.call('OPTIONS', '/api/v1/agents', undefined, {
    ...origin,
    'access-control-request-method': 'POST',
  });
  assertRejected(preflight, 'METHOD_NOT_ALLOWED');
});

const pem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
const REMEDIES: Readonly<Record<string, readonly [ask: () => Promise<TestResponse>, remedy: RegExp]>> = {
  "an administrator's token of an earlier startup": [
    () => service.as(`lha_${'a'.repeat(43)}`).get(CREDENTIALS),
    /Each start of the server makes a new one, unless it has --admin-token-file/,
  ],
  'a PEM as public key': [
    () => admin.post('/api/v1/agents', { name: 'pem', public_key: pem }),
    /-outform DER \| tail -c 32/,
  ],
  'a list with a slash at its end': [() => admin.get('/api/v1/policies/'), /must not end with a slash: remove it/],
  'a compressed body': [
    () => admin.call('POST', CREDENTIALS, {}, { 'content-encoding': 'gzip' }),
    /send the body without compression/,
  ],
};
for (const [name, [ask, remedy]] of Object.entries(REMEDIES)) {
  test(`the error names the remedy: ${name}`, async () => assert.match((await ask()).body.error.message, remedy));
}

test('an error never repeats request data', async () => {
  const sent = 'SENT-7f3a';
  const texts = [
    (await admin.get(`${CREDENTIALS}/${sent}%20`)).text,
    (await admin.get(`${CREDENTIALS}/${sent}`)).text,
    (await admin.get(`/api/v1/${sent}`)).text,
    (await admin.get(`/api/v1/agents?${sent}=1`)).text,
    (await admin.get(`/api/v1/agents?limit=${sent}`)).text,
    (await admin.get(`/api/v1/audit?since=${sent}`)).text,
    (await admin.get(`/api/v1/agents/${sent}%20`)).text,
    (await admin.get(`/api/v1/leases?status=${sent}`)).text,
    (await admin.post(CREDENTIALS, { path: `${sent} `, value: sent })).text,
    (await admin.post(CREDENTIALS, { path: 'a', value: sent, [sent]: sent })).text,
    (await admin.post('/api/v1/agents', { name: sent, public_key: sent })).text,
    (await storeAs('application/json', `{"${sent}": ${sent}`)).body,
    (await storeAs(sent)).body,
    (await service.as(sent).get('/api/v1/agents')).text,
    (await anonymous.post('/auth/verify', { challenge_id: sent, agent_name: sent, signature: sent })).text,
    (await raw([`${sent} / HTTP/1.1`, 'Host: localhost'])).body,
    (await raw(['GET /api/v1/agents HTTP/1.1', `Host: ${sent}.example`])).body,
  ];
  for (const text of texts) {
    assert.match(text, /"error"/);
    assert.equal(text.includes(sent), false, text);
  }
});

test('on a loopback listener the Host must be localhost or an IP literal, whatever its port; else 421', async () => {
  const statusFor = async (host: string) => (await raw(['GET /api/v1/agents HTTP/1.1', `Host: ${host}`, auth])).status;
  for (const host of [
    'localhost',
    'LOCALHOST:1',
    '127.0.0.1',
    '127.0.0.1:9',
    '[::1]',
    '[::1]:7700',
    '192.0.2.7',
    'localhost:65535',
  ]) {
    assert.equal(await statusFor(host), 200, host);
  }
  for (const host of [
    'evil.example',
    'localhost.evil.example',
    'evil.example:7700',
    '127.0.0.1.nip.io',
    '127.1',
    '::1',
    'a@localhost',
    '',
  ]) {
    assert.equal(await statusFor(host), 421, host);
  }
  const answer = await raw(['GET /api/v1/agents HTTP/1.1', 'Host: evil.example']);
  assert.equal(codeOf(answer), 'MISDIRECTED_REQUEST');
});

test('--public-name adds to the Host names that a loopback listener accepts', async (t) => {
  const named = await startTestService(t, ['--public-name', 'vault.example, Vault-2.example']);
  for (const [host, status] of Object.entries({
    'vault.example:1': 200,
    'VAULT-2.EXAMPLE': 200,
    'x.vault.example': 421,
  })) {
    const lines = ['GET /api/v1/health HTTP/1.1', `Host: ${host}`];
    assert.equal((await sendRaw(named.address, rawRequest(lines))).status, status, host);
  }
});

test('an unknown route is 404, with and without a token', async () => {
  for (const path of ['/', '/api', '/api/v1', '/api/v2/agents', '/API/v1/agents', '/auth', '/api/v1/audit/none']) {
    assertRejected(await admin.get(path), 'NOT_FOUND');
    assertRejected(await anonymous.get(path), 'NOT_FOUND');
  }
});
