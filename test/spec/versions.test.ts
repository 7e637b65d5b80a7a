// Versions and values of credentials. SOURCE: docs/decisions.md, "Credentials" and "Names and paths".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertInvalid, assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const KIB_256 = 262_144;

const service = await startTestService({ after });
const { admin } = service;
const store = (path: string, value: string, more: Record<string, unknown> = {}) =>
  admin.post(CREDENTIALS, { path, value, ...more });
const metadata = async (path: string) => (await admin.get(`${CREDENTIALS}/${path}?view=metadata`)).body.data;
const readValue = async (path: string, query = '', from: TestService = service) =>
  dataOf(await from.admin.get(`${CREDENTIALS}/${path}${query}`), 200, 'path value lease_id expires_at').value;

test('the stored version is a response header, also of a repeated request', async () => {
  const versionOf = async (value: string, key: string) => {
    const body = { path: 'new/header', value };
    const { headers } = await admin.call('POST', CREDENTIALS, body, { 'idempotency-key': key });
    return headers.get('leasehold-version');
  };
  assert.equal(await versionOf('first', 'one'), '1');
  assert.equal(await versionOf('second', 'two'), '2');
  assert.equal(await versionOf('first', 'one'), '1');
});

test('of two concurrent stores with If-None-Match: * one is 201, the other 409', async () => {
  const call = (value: string) =>
    admin.call('POST', CREDENTIALS, { path: 'new/race', value }, { 'if-none-match': '*' });
  const answers = await Promise.all([call('one'), call('two'), call('three')]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
  assert.equal((await metadata('new/race')).versions.length, 1);
});

test('If-None-Match with an entity tag is 400 and stores nothing', async () => {
  const body = { path: 'new/four', value: 'v' };
  assertInvalid(await admin.call('POST', CREDENTIALS, body, { 'if-none-match': '"tag"' }), 'If-None-Match');
  assertRejected(await admin.get(`${CREDENTIALS}/new/four`), 'NOT_FOUND');
});

test('version=N reads an earlier version, and the newest 10 are kept', async () => {
  for (let n = 1; n <= 13; n++) await store('kept/ten', `value ${n}`);
  const { versions } = await metadata('kept/ten');
  const numbers = versions.map(({ version }: { version: number }) => version);
  assert.deepEqual(numbers, [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  for (const n of numbers) assert.equal(await readValue('kept/ten', `?version=${n}`), `value ${n}`);
  assert.equal(await readValue('kept/ten'), 'value 13');
  for (const gone of [1, 3, 14]) {
    assertRejected(await admin.get(`${CREDENTIALS}/kept/ten?version=${gone}`), 'NOT_FOUND');
  }
  for (const bad of ['0', '-1', '1.0', 'newest', '', '1e1']) {
    assertInvalid(await admin.get(`${CREDENTIALS}/kept/ten?version=${bad}`), 'version');
  }
});

test('--versions-kept sets how many are kept', async (t) => {
  const other = await startTestService(t, ['--versions-kept', '2']);
  for (const value of ['one', 'two', 'three']) await other.admin.post(CREDENTIALS, { path: 'p', value });
  assertRejected(await other.admin.get(`${CREDENTIALS}/p?version=1`), 'NOT_FOUND');
  assert.equal(await readValue('p', '?version=2', other), 'two');
  assert.equal(await readValue('p', '', other), 'three');
});

const VALUES: Readonly<Record<string, string>> = {
  'one byte': 'x',
  'line ends of all kinds': 'a\r\nb\nc\rd\n',
  'zero bytes and controls': '\u0000\u0001\u001f\u007f\u0000',
  'a byte order mark': '\ufeffvalue',
  'spaces around it': '  value \t',
  'quotes and backslashes': '"\\" \\u0041 \\n </script>',
  'letters that compose and that are composed': 'e\u0301 \u00e9',
  'characters beyond the first plane': '\u{1f511}\u{10ffff}',
  'line separators': '\u2028\u2029',
  'JSON in a value': '{"__proto__":{"a":1}}',
};

test('a value is returned byte for byte', async () => {
  for (const [name, value] of Object.entries(VALUES)) {
    await store('bytes/one', value);
    assert.deepEqual(Buffer.from(await readValue('bytes/one')), Buffer.from(value), name);
  }
});

test('a maximal value with every byte escaped is accepted', async () => {
  const value = '\u0001'.repeat(KIB_256);
  dataOf(await store('size/two', value), 201, 'path type created_at');
  assert.equal((await readValue('size/two')) === value, true);
});
