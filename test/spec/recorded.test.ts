// The recorded events, with exactly one audit entry each. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The
// audit log".

import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { type Client, logIn, readAgentKey, verifyAs } from '../kit/client.ts';
import { executeSql, readDatabaseBytes } from '../kit/direct-db.ts';
import { alterNewestAt, bytes, concatBytes } from '../kit/encrypted-values.ts';
import { assertKeys, assertRejected, auditEntriesOf, TIMESTAMP, UUID } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const ENTRY =
  'seq id timestamp event_type agent_name resource action result policy_name lease_id code reason request_id remote_addr hmac';
const CREDENTIALS = '/api/v1/credentials';
const NO_LEASE = '0190a000-0000-7000-8000-000000000000';
const POLICY = { principal: 'agent:someone', resources: ['some/*'], actions: ['retrieve'] };

const service = await startTestService({ after });
const { admin, address, dataDir } = service;
const agent = await service.agent('worker', { 'jobs/*': ['retrieve', 'list', 'store', 'delete'] });
const key = readAgentKey(dataDir, 'worker');
await admin.post('/api/v1/agents', { name: 'other' });
const otherKey = readAgentKey(dataDir, 'other');
await admin.post(CREDENTIALS, { path: 'jobs/key', value: 'a-secret-value' });
const lend = async (): Promise<string> => (await agent.get(`${CREDENTIALS}/jobs/key`)).body.data.lease_id;
/** A session opened before the entries are counted. */
const spare = service.as(await logIn(address, 'worker', key));

type Act = (lease: string) => Promise<{ status: number }>;
const get = (target: string, as: Client = agent) => as.get(`${CREDENTIALS}${target}`);
const store = (path: string, as: Client = agent) => as.post(CREDENTIALS, { path, value: 'v' });
const remove = (path: string) => agent.delete(`${CREDENTIALS}/${path}`);
const create = () => admin.post('/api/v1/policies', { name: 'p', ...POLICY });
const register = (name: string) => admin.post('/api/v1/agents', { name });
const revoke = (body: unknown) => admin.post('/api/v1/leases/revoke', body);
const onlyIfNew = { 'if-none-match': '*' };

/** The claim, the request, its status, and the entry: event, agent_name, resource, result, policy_name. */
const ROWS: readonly (readonly [claim: string, act: Act, status: number, entry: string])[] = [
  ['a retrieval', () => get('/jobs/key'), 200, 'credential.retrieve worker jobs/key allowed worker-0'],
  [
    'one by the administrator',
    () => get('/jobs/key', admin),
    200,
    'credential.retrieve admin jobs/key allowed builtin:admin',
  ],
  ['a retrieval of nothing', () => get('/jobs/no'), 404, 'credential.retrieve worker jobs/no not_found worker-0'],
  [
    'one of no version',
    () => get('/jobs/key?version=9'),
    404,
    'credential.retrieve worker jobs/key not_found worker-0',
  ],
  ['a list', () => get(''), 200, 'credential.list worker * allowed'],
  ['a list by the administrator', () => get('?limit=2', admin), 200, 'credential.list admin * allowed'],
  ['a look', () => get('/jobs/key?view=metadata'), 200, 'credential.list worker jobs/key allowed worker-0'],
  ['a look at nothing', () => get('/jobs/no?view=metadata'), 404, 'credential.list worker jobs/no not_found worker-0'],
  ['a store', () => store('jobs/new'), 201, 'credential.store worker jobs/new allowed worker-0'],
  [
    'a store by the administrator',
    () => store('jobs/new', admin),
    201,
    'credential.store admin jobs/new allowed builtin:admin',
  ],
  [
    'a store rejected by If-None-Match',
    () => agent.call('POST', CREDENTIALS, { path: 'jobs/key', value: 'v' }, onlyIfNew),
    409,
    'credential.store worker jobs/key denied worker-0',
  ],
  ['a deletion', () => remove('jobs/new'), 204, 'credential.delete worker jobs/new allowed worker-0'],
  ['a deletion of nothing', () => remove('jobs/no'), 404, 'credential.delete worker jobs/no not_found worker-0'],
  ['a policy created', create, 201, 'policy.create admin policy:p allowed'],
  ['a policy whose name is taken', create, 409, 'policy.create admin policy:p denied'],
  ['a policy replaced', () => admin.put('/api/v1/policies/p', POLICY), 200, 'policy.replace admin policy:p allowed'],
  ['a policy deleted', () => admin.delete('/api/v1/policies/p'), 204, 'policy.delete admin policy:p allowed'],
  ['a deletion of no policy', () => admin.delete('/api/v1/policies/p'), 404, 'policy.delete admin policy:p not_found'],
  ['an agent registered', () => register('fresh'), 201, 'agent.register admin agent:fresh allowed'],
  ['an agent whose name is taken', () => register('FRESH'), 409, 'agent.register admin agent:FRESH denied'],
  [
    'an agent deregistered',
    () => admin.delete('/api/v1/agents/fresh'),
    204,
    'agent.deregister admin agent:fresh allowed',
  ],
  [
    'no agent deregistered',
    () => admin.delete('/api/v1/agents/fresh'),
    404,
    'agent.deregister admin agent:fresh not_found',
  ],
  ['a login', () => verifyAs(address, 'worker', key), 200, 'auth.verify worker agent:worker allowed'],
  ['a failed login', () => verifyAs(address, 'worker', otherKey), 401, 'auth.verify worker agent:worker denied'],
  ['a session ended', () => spare.delete('/auth/session'), 204, 'session.end worker agent:worker allowed'],
  [
    'a renewal',
    (id) => agent.post(`/api/v1/leases/${id}/renew`),
    200,
    'lease.renew worker lease:<id> allowed worker-0',
  ],
  ['a revocation', (id) => agent.delete(`/api/v1/leases/${id}`), 204, 'lease.revoke worker lease:<id> allowed'],
  [
    'one of no lease',
    () => agent.delete(`/api/v1/leases/${NO_LEASE}`),
    404,
    `lease.revoke worker lease:${NO_LEASE} not_found`,
  ],
  ['leases revoked by path', () => revoke({ path: 'jobs/key' }), 200, 'lease.revoke admin jobs/key allowed'],
  ['leases revoked by agent', () => revoke({ agent: 'worker' }), 200, 'lease.revoke admin agent:worker allowed'],
];

suite('recorded with exactly one entry', () => {
  for (const [claim, act, status, expected] of ROWS) {
    test(`recorded: ${claim}: ${expected}`, async () => {
      const lease = expected.startsWith('lease.') ? await lend() : '';
      const entries = await auditEntriesOf(service, async () => assert.equal((await act(lease)).status, status));
      assert.equal(entries.length, 1);
      const [entry] = entries;
      assertKeys(entry, ENTRY);
      const { event_type: event, agent_name, resource, result, policy_name } = entry;
      const words = [event, agent_name, resource, result, policy_name].filter((word) => word !== null);
      assert.equal(words.join(' '), expected.replace('<id>', lease));
      assert.equal(entry.action, event.slice(event.indexOf('.') + 1));
      assert.match(entry.id, UUID);
      assert.match(entry.timestamp, TIMESTAMP);
      assert.equal(entry.remote_addr, '127.0.0.1');
      assert.equal(Buffer.from(entry.hmac, 'base64').length, 32);
      assert.equal(JSON.stringify(entry).includes('a-secret-value'), false);
    });
  }
});

test('the entry of an allowed retrieval names its lease, and request_id is the response’s X-Request-Id', async () => {
  let answer = await agent.get('/auth/session');
  const [entry] = await auditEntriesOf(service, async () => {
    answer = await agent.get(`${CREDENTIALS}/jobs/key`);
  });
  assert.equal(entry.lease_id, answer.body.data.lease_id);
  assert.equal(entry.request_id, answer.headers.get('x-request-id'));
});

test('a value that fails authentication is 500 INTEGRITY_FAILURE, recorded as error, with no lease and no count', async () => {
  await admin.post(CREDENTIALS, { path: 'jobs/altered', value: 'v' });
  await executeSql(
    dataDir,
    alterNewestAt('jobs/altered', (column) => concatBytes(column, bytes('00'))),
  );
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await agent.get(`${CREDENTIALS}/jobs/altered`), 'INTEGRITY_FAILURE');
  });
  assert.deepEqual(
    entries.map(({ event_type, result, lease_id }) => [event_type, result, lease_id]),
    [['credential.retrieve', 'error', null]],
  );
  assert.equal((await admin.get(`${CREDENTIALS}/jobs/altered?view=metadata`)).body.data.access_count, 0);
});

test('agent_name, resource and action are never null, and no entry holds a token or a value', async () => {
  const answer = await admin.get('/api/v1/audit?limit=1000');
  for (const entry of answer.body.data) {
    for (const field of ['agent_name', 'resource', 'action']) assert.equal(typeof entry[field], 'string', field);
  }
  for (const secret of [service.adminToken, agent.token, 'lha_', 'lhs_', 'a-secret-value']) {
    assert.equal(answer.text.includes(secret), false, secret);
  }
});

test('tokens are stored as hashes, and values only encrypted', async () => {
  const stored = await readDatabaseBytes(dataDir);
  assert.equal(stored.includes('credential.retrieve'), true, 'nothing was looked at');
  for (const secret of ['a-secret-value', agent.token, service.adminToken, agent.token.slice(4)]) {
    assert.equal(stored.includes(secret), false);
  }
});
