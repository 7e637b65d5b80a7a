// Names and paths follow one grammar everywhere. SOURCE: docs/decisions.md, "Names and paths".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertInvalid, assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';

const service = await startTestService({ after });
const { admin } = service;
const policy = (more: Record<string, unknown>) =>
  admin.post('/api/v1/policies', { name: 'p', principal: 'agent:a', resources: ['a'], actions: ['list'], ...more });

/** A retrieval whose path is written literally into the request line. */
function retrieveRaw(target: string) {
  const lines = [
    `GET ${CREDENTIALS}/${target} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${service.adminToken}`,
  ];
  return sendRaw(service.address, rawRequest(lines));
}

const GOOD_PATHS: Readonly<Record<string, string>> = {
  'one character': 'a',
  'every character that is allowed': 'ABCXYZabcxyz0189._-@:+=~',
  'dots that are no dot segment': 'a/.../.b/c./..d/e..',
  'a segment of 128 characters': 's'.repeat(128),
  '32 segments': Array<string>(32).fill('s').join('/'),
  '512 characters': [...Array<string>(3).fill('s'.repeat(128)), 's'.repeat(125)].join('/'),
};

const BAD_PATHS: Readonly<Record<string, string>> = {
  'nothing at all': '',
  'a slash before it': '/a',
  'a slash behind it': 'a/',
  'two slashes in a row': 'a//b',
  'a segment .': 'a/./b',
  'a segment ..': 'a/../b',
  'only ..': '..',
  'a space': 'a b',
  'a percent sign': 'a%2Fb',
  'a backslash': 'a\\b',
  'an asterisk': 'a/*',
  'a letter beyond ASCII': 'a/é',
  'a letter that only looks like a slash': 'a\u2215b',
  'a line end': 'a\n',
  'a zero byte': 'a\u0000',
  'a question mark': 'a?b',
  'a segment of 129 characters': 's'.repeat(129),
  '33 segments': Array<string>(33).fill('s').join('/'),
  '513 characters': [...Array<string>(3).fill('s'.repeat(128)), 's'.repeat(126)].join('/'),
};

for (const [name, path] of Object.entries(GOOD_PATHS)) {
  test(`a valid credential path is accepted: ${name}`, async () => {
    const stored = dataOf(await admin.post(CREDENTIALS, { path, value: name }), 201, 'path type created_at');
    assert.equal(stored.path, path);
    const asItIs = await retrieveRaw(path);
    assert.equal(asItIs.status, 200);
    assert.equal(JSON.parse(asItIs.body).data.value, name);
    const escaped = await admin.get(`${CREDENTIALS}/${encodeURIComponent(path)}`);
    assert.equal(escaped.body.data.value, name);
    assert.equal(escaped.body.data.path, path);
    assert.equal((await policy({ name: `good-${name.replaceAll(/\W/g, '-')}`, resources: [path] })).status, 201);
  });
}

for (const [name, path] of Object.entries(BAD_PATHS)) {
  test(`an invalid credential path is 400 everywhere: ${name}`, async () => {
    const escaped = encodeURIComponent(path);
    assertInvalid(await admin.post(CREDENTIALS, { path, value: 'v' }), 'path');
    assertInvalid(await admin.get(`/api/v1/leases?path=${escaped}`), 'path');
    assertInvalid(await admin.post('/api/v1/leases/revoke', { path }), 'path');
    assertInvalid(
      await admin.post('/api/v1/policies/simulate', { agent: 'a', resource: path, action: 'list' }),
      'resource',
    );
    if (path !== 'a/*') assertInvalid(await policy({ name: 'bad', resources: [path] }), 'resources');
    const retrieved = await retrieveRaw(escaped);
    assert.equal(retrieved.status, 400);
    const { code, message } = JSON.parse(retrieved.body).error;
    assert.equal(code, 'INVALID_REQUEST');
    assert.match(message, /^path: /);
  });
}

test('in a URL prod/db/password and prod%2Fdb%2Fpassword name the same credential', async () => {
  await admin.post(CREDENTIALS, { path: 'prod/db/password', value: 'the one' });
  for (const spelling of ['prod/db/password', 'prod%2Fdb%2Fpassword', 'prod%2fdb/password', '%70rod/db/password']) {
    const answer = await retrieveRaw(spelling);
    assert.equal(answer.status, 200, spelling);
    assert.equal(JSON.parse(answer.body).data.value, 'the one');
  }
  assert.equal((await admin.delete(`${CREDENTIALS}/prod%2Fdb%2Fpassword`)).status, 204);
});

test('a path in a URL is decoded once and never normalised', async () => {
  await admin.post(CREDENTIALS, { path: 'once/a', value: 'v' });
  for (const spelling of [
    'once%252Fa',
    'once/./a',
    'once/b/../a',
    'once//a',
    'once/%2e/a',
    'once/b/%2e%2e/a',
    'once\\a',
  ]) {
    assert.equal((await retrieveRaw(spelling)).status, 400, spelling);
  }
  assert.equal((await retrieveRaw('once/a%zz')).status, 400);
});

test('a credential path is case-sensitive', async () => {
  await admin.post(CREDENTIALS, { path: 'case/Key', value: 'upper' });
  assertRejected(await admin.get(`${CREDENTIALS}/case/key`), 'NOT_FOUND');
  await admin.post(CREDENTIALS, { path: 'case/key', value: 'lower' });
  assert.equal((await admin.get(`${CREDENTIALS}/case/Key`)).body.data.value, 'upper');
});

const AGENT_NAMES = {
  good: ['a', '0', 'A.b_c-9', 'n'.repeat(63)],
  bad: ['', '.a', '-a', '_a', 'a b', 'a/b', 'ä', 'n'.repeat(64)],
};
const POLICY_NAMES = {
  good: ['a', '0', 'A.b_c-9', 'n'.repeat(128)],
  bad: ['', '.a', '-a', '_a', 'a b', 'a/b', 'ä', 'n'.repeat(129)],
};
const TYPES = {
  good: ['a', '0', 'A.b_c-9', 'n'.repeat(64)],
  bad: ['', '.a', '-a', '_a', 'a b', 'a/b', 'ä', 'n'.repeat(65)],
};
const WELL_KNOWN_TYPES = ['api_key', 'token', 'password', 'certificate', 'ssh_key', 'oauth_token'];

test('an agent name begins with a letter or digit and has up to 63 of A–Z a–z 0–9 . _ -', async () => {
  for (const name of AGENT_NAMES.good) assert.equal((await admin.post('/api/v1/agents', { name })).status, 201, name);
  for (const name of AGENT_NAMES.bad) {
    assertInvalid(await admin.post('/api/v1/agents', { name }), 'name');
    assertInvalid(await policy({ principal: `agent:${name}` }), 'principal');
    assertInvalid(await service.anonymous.post('/auth/challenge', { agent_name: name }), 'agent_name');
  }
});

test('the agent names admin, service and anonymous are reserved in any case', async () => {
  for (const name of ['admin', 'service', 'anonymous', 'Admin', 'SERVICE', 'anonymouS']) {
    assertInvalid(await admin.post('/api/v1/agents', { name }), 'name');
    assertInvalid(await policy({ principal: `agent:${name}` }), 'principal');
  }
});

test('a policy name begins with a letter or digit and has up to 128 of A–Z a–z 0–9 . _ -', async () => {
  for (const name of POLICY_NAMES.good) assert.equal((await policy({ name })).status, 201, name);
  for (const name of POLICY_NAMES.bad) assertInvalid(await policy({ name }), 'name');
});

test('a credential type has 1 to 64 such characters, including the well-known types', async () => {
  const path = 'types/a';
  for (const type of [...TYPES.good, ...WELL_KNOWN_TYPES]) {
    const stored = dataOf(await admin.post(CREDENTIALS, { path, value: 'v', type }), 201, 'path type created_at');
    assert.equal(stored.type, type);
  }
  for (const type of TYPES.bad) assertInvalid(await admin.post(CREDENTIALS, { path, value: 'v', type }), 'type');
});
