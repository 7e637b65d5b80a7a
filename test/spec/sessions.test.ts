// Sessions and the administrator's token. SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertRejected, auditEntriesOf, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const SESSION = 'session_id agent_name expires_at expires_in';

const service = await startTestService({ after });
const { admin, address } = service;
/** The status of GET /credentials with this header. */
const statusWith = async (...headers: string[]) => {
  const lines = ['GET /api/v1/credentials HTTP/1.1', 'Host: localhost', ...headers];
  return (await sendRaw(address, rawRequest(lines))).status;
};

test('without a valid token every guarded route is 401 UNAUTHENTICATED with WWW-Authenticate: Bearer', async () => {
  assertRejected(await service.anonymous.get('/api/v1/credentials'), 'UNAUTHENTICATED');
  for (const token of ['x', `${service.adminToken}x`, service.adminToken.slice(0, -1), `lhs_${'A'.repeat(43)}`]) {
    assertRejected(await service.as(token).get('/api/v1/credentials'), 'UNAUTHENTICATED');
  }
  for (const header of ['Basic YTpi', 'Bearer', 'Bearer a b', service.adminToken, `Token ${service.adminToken}`]) {
    assert.equal(await statusWith(`Authorization: ${header}`), 401, header);
  }
});

test('a session_id is a Bearer token, and GET /auth/session returns the caller’s session', async () => {
  const agent = await service.agent('own-session');
  const session = dataOf(await agent.get('/auth/session'), 200, SESSION);
  assert.deepEqual([session.session_id, session.agent_name], [agent.token, 'own-session']);
});

test('the administrator reads a value without a policy: builtin:admin, 3600 s, recorded as admin', async () => {
  await admin.post('/api/v1/credentials', { path: 'admin/key', value: 'v' });
  const [entry] = await auditEntriesOf(service, async () => {
    const { lease_id, expires_at } = (await admin.get('/api/v1/credentials/admin/key')).body.data;
    const lease = (await admin.get(`/api/v1/leases/${lease_id}`)).body.data;
    assert.deepEqual([lease.agent_name, lease.policy_name], ['admin', 'builtin:admin']);
    assert.equal(Date.parse(expires_at) - Date.parse(lease.issued_at), 3_600_000);
  });
  assert.deepEqual([entry.agent_name, entry.policy_name], ['admin', 'builtin:admin']);
  const { lease_id, expires_at } = (await admin.get('/api/v1/credentials/admin/key?ttl=60')).body.data;
  const { issued_at } = (await admin.get(`/api/v1/leases/${lease_id}`)).body.data;
  assert.equal(Date.parse(expires_at) - Date.parse(issued_at), 60_000);
});

test('--admin-retrieve=deny forbids the administrator, and operators with the role admin, only to read values', async (t) => {
  const strict = await startTestService(t, ['--admin-retrieve', 'deny']);
  assert.equal((await strict.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  const entries = await auditEntriesOf(strict, async () => {
    assertRejected(await strict.admin.get('/api/v1/credentials/a'), 'ACCESS_DENIED');
  });
  assert.deepEqual(
    entries.map(({ agent_name, result }) => [agent_name, result]),
    [['admin', 'denied']],
  );
  assert.equal((await strict.admin.get('/api/v1/credentials/a?view=metadata')).body.data.access_count, 0);
  const agent = await strict.agent('reader', { '*': ['retrieve'] });
  assert.equal((await agent.get('/api/v1/credentials/a')).body.data.value, 'v');
  const boss = await addOperator(strict, 'boss', ['admin'], { '*': ['retrieve'] });
  assertRejected(await boss.get('/api/v1/credentials/a'), 'ACCESS_DENIED');
  const question = { agent: 'operator:boss', resource: 'a', action: 'retrieve' };
  const simulated = (await strict.admin.post('/api/v1/policies/simulate', question)).body.data;
  assert.deepEqual([simulated.allowed, simulated.policy_name], [false, null]);
  assert.equal((await strict.admin.delete('/api/v1/credentials/a')).status, 204);
});

test('a session survives a restart; the old administrator token does not', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const first = await startTestService(t, [], directory);
  const agent = await first.agent('survivor', { '*': ['list'] });
  await first.stop();
  const second = await startTestService(t, [], directory);
  dataOf(await createClient(second.address, agent.token).get('/auth/session'), 200, SESSION);
  assertRejected(await second.as(first.adminToken).get('/api/v1/agents'), 'UNAUTHENTICATED');
  assert.notEqual(second.adminToken, first.adminToken);
});
