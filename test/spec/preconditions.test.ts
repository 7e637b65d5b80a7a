// If-Match and If-None-Match on existing and missing resources. SOURCE: RFC 9110, section 13.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const { admin } = service;
const CREDENTIAL = '/api/v1/credentials/some/path';
const POLICY = { principal: 'agent:a', resources: ['a'], actions: ['list'] };

const store = () => admin.post('/api/v1/credentials', { path: 'some/path', value: 'v' });
const call = (method: string, path: string, header: string, value: string, body?: unknown) =>
  admin.call(method, path, body, { [header]: value });

test('If-Match with a tag of another state is 412: nothing changes, and the rejection is recorded', async () => {
  await store();
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await call('DELETE', CREDENTIAL, 'if-match', '"1"'), 'PRECONDITION_FAILED');
    assertRejected(await call('GET', CREDENTIAL, 'if-match', 'W/"1", "2"'), 'PRECONDITION_FAILED');
    assertRejected(await call('PUT', '/api/v1/policies/new', 'if-match', '"1"', POLICY), 'PRECONDITION_FAILED');
  });
  const seen = entries.map(({ event_type, result }) => `${event_type} ${result}`);
  assert.deepEqual(seen.sort(), ['credential.delete denied', 'credential.retrieve denied', 'policy.replace denied']);
  assert.equal((await admin.get(CREDENTIAL)).status, 200);
  assert.equal((await admin.get('/api/v1/policies/new')).status, 404);
  assert.equal(
    (await admin.get('/api/v1/leases?path=some/path')).body.data.length,
    1,
    'only the last GET made a lease',
  );
});

test('If-Match: * matches an existing resource', async () => {
  await store();
  assertRejected(await call('PUT', '/api/v1/policies/absent', 'if-match', '*', POLICY), 'PRECONDITION_FAILED');
  assert.equal((await admin.put('/api/v1/policies/present', POLICY)).status, 200);
  assert.equal((await call('PUT', '/api/v1/policies/present', 'if-match', '*', POLICY)).status, 200);
  assert.equal((await call('DELETE', CREDENTIAL, 'if-match', '*')).status, 204);
});

test('If-None-Match: * matches a missing resource; GET of an existing one is 304', async () => {
  await store();
  assert.equal((await call('PUT', '/api/v1/policies/first', 'if-none-match', '*', POLICY)).status, 200);
  assertRejected(await call('PUT', '/api/v1/policies/first', 'if-none-match', '*', POLICY), 'PRECONDITION_FAILED');
  assertRejected(await call('DELETE', CREDENTIAL, 'if-none-match', '*'), 'PRECONDITION_FAILED');
  const unchanged = await call('GET', CREDENTIAL, 'if-none-match', '*');
  assert.deepEqual([unchanged.status, unchanged.text], [304, '']);
  assert.equal((await call('GET', CREDENTIAL, 'if-none-match', '"1"')).status, 200);
});

test('preconditions are ignored where the request is rejected without them', async () => {
  const agent = await service.agent('without-grants');
  assertRejected(await agent.call('GET', CREDENTIAL, undefined, { 'if-match': '"1"' }), 'ACCESS_DENIED');
  assertRejected(await call('DELETE', '/api/v1/credentials/not/there', 'if-match', '"1"'), 'NOT_FOUND');
  assertRejected(await call('PUT', '/api/v1/policies/x', 'if-match', '"1"', {}), 'INVALID_REQUEST');
});
