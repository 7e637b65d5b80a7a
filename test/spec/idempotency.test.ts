// A POST with an Idempotency-Key can be sent again safely.
// SOURCE: docs/decisions.md, "Idempotency".

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { type Client, logIn, readAgentKey } from '../kit/client.ts';
import { rawRequest, sendRaw, toResponse } from '../kit/raw.ts';
import { assertInvalid, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('ci', { 'ci/*': ['store', 'retrieve'], 'shared/*': ['store'] });
const other = await service.agent('other', { 'shared/*': ['store'] });

const post = (as: Client, path: string, body: unknown, key: string, more = {}) =>
  as.call('POST', path, body, { 'idempotency-key': key, ...more });
const store = (as: Client, key: string, body: Record<string, unknown>, more = {}) =>
  post(as, CREDENTIALS, { value: 'v', ...body }, key, more);
const versionOf = async (path: string): Promise<number> =>
  (await admin.get(`${CREDENTIALS}/${path}?view=metadata`)).body.data.versions.length;

test('the request fingerprint covers value, description, type and If-None-Match', async () => {
  const key = randomUUID();
  const body = { path: 'ci/parts', value: 'one', description: 'd', type: 'token' };
  assert.equal((await store(agent, key, body)).status, 201);
  for (const part of [
    { value: 'two' },
    { value: 'one ' },
    { description: 'e' },
    { type: 'key' },
    { type: undefined },
  ]) {
    assertInvalid(await store(agent, key, { ...body, ...part }), 'Idempotency-Key');
  }
  assertInvalid(await store(agent, key, body, { 'if-none-match': '*' }), 'Idempotency-Key');
  assertInvalid(await post(agent, '/api/v1/leases/revoke', {}, key), 'agent');
  assertInvalid(await post(agent, '/api/v1/leases/revoke', { agent: 'ci' }, key), 'Idempotency-Key');
  const { path, ...rest } = body;
  assert.equal((await store(agent, key, { ...rest, path })).status, 201);
  assert.equal(await versionOf('ci/parts'), 1);
});

test('a repeated store with If-None-Match: * returns the first 201, not 409', async () => {
  const key = randomUUID();
  const first = await store(agent, key, { path: 'ci/only-new' }, { 'if-none-match': '*' });
  const repeat = await store(agent, key, { path: 'ci/only-new' }, { 'if-none-match': '*' });
  assert.deepEqual([repeat.status, repeat.text], [201, first.text]);
  assertRejected(await store(agent, randomUUID(), { path: 'ci/only-new' }, { 'if-none-match': '*' }), 'ALREADY_EXISTS');
});

test('idempotency keys are separate per caller', async () => {
  const key = randomUUID();
  const entries = await auditEntriesOf(service, async () => {
    for (const [caller, value] of [
      [admin, 'a'],
      [agent, 'b'],
      [other, 'c'],
    ] as const) {
      assert.equal((await store(caller, key, { path: 'shared/one', value })).status, 201);
    }
  });
  assert.deepEqual(
    entries.map(({ agent_name }) => agent_name),
    ['admin', 'ci', 'other'],
  );
  assert.equal(await versionOf('shared/one'), 3);
});

test('a rejection is not stored: the same request succeeds under its key once a policy grants it', async () => {
  const key = randomUUID();
  const body = { path: 'late/one' };
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await store(agent, key, body), 'ACCESS_DENIED');
    assertRejected(await store(agent, key, body), 'ACCESS_DENIED');
    await admin.put('/api/v1/policies/late', { principal: 'agent:ci', resources: ['late/*'], actions: ['store'] });
    assert.equal((await store(agent, key, body)).status, 201);
    assert.equal((await store(agent, key, body)).status, 201);
  });
  assert.deepEqual(
    entries.map(({ event_type, result }) => `${event_type} ${result}`),
    ['credential.store denied', 'credential.store denied', 'policy.replace allowed', 'credential.store allowed'],
  );
});

test('a new session of the agent is the same caller; an ended session gets no stored response', async () => {
  const key = randomUUID();
  const [one, two] = await Promise.all(
    [1, 2].map(() => logIn(service.address, 'ci', readAgentKey(service.dataDir, 'ci'))),
  );
  const [before, now] = [service.as(one ?? ''), service.as(two ?? '')];
  const first = await store(before, key, { path: 'ci/sessions' });
  assert.equal((await store(now, key, { path: 'ci/sessions' })).text, first.text);
  await before.delete('/auth/session');
  assertRejected(await store(before, key, { path: 'ci/sessions' }), 'UNAUTHENTICATED');
  assert.equal((await store(now, key, { path: 'ci/sessions' })).text, first.text);
  assert.equal(await versionOf('ci/sessions'), 1);
});

test('an agent registered under an old name does not get the stored responses of its predecessor', async () => {
  const key = randomUUID();
  const first = await service.agent('again', { 'again/*': ['store'] });
  assert.equal((await store(first, key, { path: 'again/one' })).status, 201);
  await admin.delete('/api/v1/agents/again');
  await admin.post('/api/v1/agents', { name: 'again' });
  const second = service.as(await logIn(service.address, 'again', readAgentKey(service.dataDir, 'again')));
  assert.equal((await store(second, key, { path: 'again/two' })).status, 201);
  assert.equal((await store(second, key, { path: 'again/two' })).status, 201);
  assert.deepEqual([await versionOf('again/one'), await versionOf('again/two')], [1, 1]);
});

test('routes without idempotency ignore the header, whatever its value', async () => {
  const question = { agent: 'ci', resource: 'ci/x', action: 'retrieve' };
  for (const key of ['k', 'a b', 'k'.repeat(300)]) {
    const first = await post(service.anonymous, '/auth/challenge', { agent_name: 'ci' }, key);
    const second = await post(service.anonymous, '/auth/challenge', { agent_name: 'ci' }, key);
    assert.notEqual(first.body.data.challenge_id, second.body.data.challenge_id);
    assert.equal((await post(admin, '/api/v1/policies/simulate', question, key)).status, 200);
    assert.equal((await admin.call('GET', '/api/v1/policies', undefined, { 'idempotency-key': key })).status, 200);
    assert.equal(
      (await admin.call('DELETE', '/api/v1/policies/none', undefined, { 'idempotency-key': key })).status,
      404,
    );
  }
});

test('a key must be 1 to 255 visible ASCII characters, sent once', async () => {
  let count = 0;
  const ask = async (...lines: string[]) => {
    const body = JSON.stringify({ path: `grammar/${++count}`, value: 'v' });
    const head = [`POST ${CREDENTIALS} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${service.adminToken}`];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    return toResponse(await sendRaw(service.address, rawRequest([...head, ...type, ...lines], body)));
  };
  for (const key of ['!', '~', 'k'.repeat(255), '"quoted"', 'a,b;c', '\\']) {
    assert.equal((await ask(`Idempotency-Key: ${key}`)).status, 201, key);
    assert.equal((await ask(`IDEMPOTENCY-KEY:${key}  `)).status, 400, 'blanks around it are not part of it');
  }
  const entries = await auditEntriesOf(service, async () => {
    for (const key of ['', ' ', 'a b', 'a\tb', 'é', '\u0080', 'k'.repeat(256)]) {
      assertInvalid(await ask(`Idempotency-Key: ${key}`), 'Idempotency-Key');
    }
    for (const second of ['twice', 'other', '']) {
      const message = assertRejected(
        await ask('Idempotency-Key: twice', `idempotency-key: ${second}`),
        'INVALID_REQUEST',
      );
      assert.equal(message, 'Idempotency-Key: must be given once');
    }
  });
  assert.deepEqual(entries, []);
});
