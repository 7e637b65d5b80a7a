// Leases. SOURCE: docs/api.md, "Leases"; docs/decisions.md, "Leases".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { assertInvalid, assertRejected, dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const LEASES = '/api/v1/leases';
const LEASE = 'lease_id agent_name path version policy_name issued_at expires_at revoked_at status';
const NO_LEASE = '0190a000-0000-7000-8000-000000000000';

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin } = service;
/** Ends the leases of one second. A server that shares its database learns the time from the next entry. */
const pass = async (): Promise<void> => {
  await clock.move(1100);
  await admin.get('/api/v1/credentials');
};
/** Retrieves the credential, storing it first if missing; returns the lease's id. */
const lend = async (to: Client, path: string, query = ''): Promise<string> => {
  await admin.call('POST', '/api/v1/credentials', { path, value: 'v' }, { 'if-none-match': '*' });
  return dataOf(await to.get(`/api/v1/credentials/${path}${query}`), 200, 'path value lease_id expires_at').lease_id;
};
const read = async (id: string, as: Client = admin) => dataOf(await as.get(`${LEASES}/${id}`), 200, LEASE);
const listed = async (query: string, as: Client = admin): Promise<string[]> =>
  dataOf(await as.get(`${LEASES}${query}`), 200, LEASE).map((lease: { lease_id: string }) => lease.lease_id);

test('GET /leases/:lease_id returns every field of the lease', async () => {
  const agent = await service.agent('reads-one', { 'reads/*': ['retrieve'] });
  const id = await lend(agent, 'reads/one');
  const { issued_at, expires_at, ...rest } = await read(id);
  assert.deepEqual(rest, {
    lease_id: id,
    agent_name: 'reads-one',
    path: 'reads/one',
    version: 1,
    policy_name: 'reads-one-0',
    revoked_at: null,
    status: 'active',
  });
  for (const at of [issued_at, expires_at]) assert.match(at, TIMESTAMP);
  assert.equal(Date.parse(expires_at) - Date.parse(issued_at), 300_000);
  assert.deepEqual(await read(id, agent), await read(id));
  assertRejected(await admin.get(`${LEASES}/${NO_LEASE}`), 'NOT_FOUND');
});

test('GET /leases filters by agent and path, and values without matches return an empty list', async () => {
  const [one, two] = [await service.agent('filter-1'), await service.agent('filter-2')];
  await admin.post('/api/v1/policies', {
    name: 'filter',
    principal: 'agent:filter-*',
    resources: ['filter/*'],
    actions: ['retrieve'],
  });
  const [oneA, oneB, twoA] = [await lend(one, 'filter/a'), await lend(one, 'filter/b'), await lend(two, 'filter/a')];
  assert.deepEqual(await listed('?agent=filter-1'), [oneB, oneA]);
  assert.deepEqual(await listed('?path=filter/a'), [twoA, oneA]);
  assert.deepEqual(await listed('?path=filter%2Fa&agent=filter-1'), [oneA]);
  assert.deepEqual(await listed('?agent=filter-2&status=active'), [twoA]);
  const byAdmin = await lend(admin, 'filter/a');
  assert.deepEqual(await listed('?agent=admin&path=filter/a'), [byAdmin]);
  for (const query of ['?agent=nobody', '?path=no/such', '?agent=filter-2&path=filter/b', '?agent=Filter-1']) {
    assert.deepEqual(await listed(query), [], query);
  }
});

test('GET /leases filters by status active, expired or revoked; any other value is 400', async () => {
  const agent = await service.agent('by-status', { 'status/*': ['retrieve'] });
  const short = await lend(agent, 'status/a', '?ttl=1');
  const revoked = await lend(agent, 'status/b');
  const active = await lend(agent, 'status/c');
  await agent.delete(`${LEASES}/${revoked}`);
  await pass();
  const of = async (status: string) => listed(`?agent=by-status&status=${status}`);
  assert.deepEqual([await of('active'), await of('expired'), await of('revoked')], [[active], [short], [revoked]]);
  for (const [id, status] of [
    [active, 'active'],
    [short, 'expired'],
    [revoked, 'revoked'],
  ] as const) {
    const lease = await read(id);
    assert.equal(lease.status, status);
    assert.equal(lease.revoked_at !== null, status === 'revoked');
  }
  assert.deepEqual(await listed('?agent=by-status'), [active, revoked, short]);
  for (const status of ['Active', 'ended', '']) assertInvalid(await admin.get(`${LEASES}?status=${status}`), 'status');
});

test('a revocation counts the retrieval leases that a change of targets left active', async () => {
  const path = 'counted/key';
  await admin.post('/api/v1/credentials', { path, value: 'x' });
  const { body } = await admin.get(`/api/v1/credentials/${path}`);
  await admin.get(`/api/v1/credentials/${path}`);
  const targets = [{ origin: 'https://api.example.com' }];
  assert.equal((await admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } })).status, 200);
  const lease = await admin.get(`/api/v1/leases/${body.data.lease_id}`);
  assert.equal(lease.body.data.status, 'active');
  assert.deepEqual((await admin.post('/api/v1/leases/revoke', { path })).body.data, { revoked: 2 });
});
