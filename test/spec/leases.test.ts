// Leases. SOURCE: docs/api.md, "Leases"; docs/decisions.md, "Leases".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { assertInvalid, assertNoContent, assertRejected, dataOf, TIMESTAMP } from '../kit/responses.ts';
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

test('an agent sees only its own leases, whatever the filter', async () => {
  const own = await service.agent('own', { 'own/*': ['retrieve'] });
  const other = await service.agent('other', { 'own/*': ['retrieve'] });
  const [mine, theirs] = [await lend(own, 'own/a'), await lend(other, 'own/a')];
  assert.deepEqual(await listed('', own), [mine]);
  assert.deepEqual(await listed('?path=own/a', own), [mine]);
  assert.deepEqual(await listed('?agent=other', own), []);
  assert.deepEqual(await listed('?agent=own', own), [mine]);
  const answer = await own.get(`${LEASES}/${theirs}`);
  assertRejected(answer, 'NOT_FOUND');
  assert.deepEqual(answer.body, (await own.get(`${LEASES}/${NO_LEASE}`)).body);
});

test('DELETE /leases/:lease_id revokes: 204, and the lease says when', async () => {
  const agent = await service.agent('revokes', { 'revoke/*': ['retrieve'] });
  const id = await lend(agent, 'revoke/a');
  assertNoContent(await agent.delete(`${LEASES}/${id}`));
  const { status, revoked_at, issued_at } = await read(id);
  assert.equal(status, 'revoked');
  assert.equal(revoked_at >= issued_at, true);
  assertNoContent(await agent.delete(`${LEASES}/${id}`));
  assert.equal((await read(id)).revoked_at, revoked_at);
  assertRejected(await agent.delete(`${LEASES}/${NO_LEASE}`), 'NOT_FOUND');
});

test('a renewal is decided by the current policies and runs from now', async () => {
  const agent = await service.agent('renews', { 'renew/*': ['retrieve'] });
  const id = await lend(agent, 'renew/a', '?ttl=60');
  const before = await read(id);
  await pass();
  const renewed = dataOf(await agent.post(`${LEASES}/${id}/renew`), 200, LEASE);
  const { expires_at, ...rest } = renewed;
  assert.deepEqual({ ...rest, expires_at: before.expires_at }, before);
  const livesFor = Date.parse(expires_at) - Date.parse(before.issued_at);
  assert.ok(livesFor >= 301_100, `${livesFor} ms`);
  const shorter = { principal: 'agent:renews', resources: ['renew/a'], actions: ['retrieve'], max_ttl: 40 };
  await admin.put('/api/v1/policies/renew-shorter', shorter);
  const again = dataOf(await agent.post(`${LEASES}/${id}/renew`), 200, LEASE);
  assert.equal(again.policy_name, 'renew-shorter');
  assert.equal(again.expires_at < expires_at, true);
  assert.deepEqual(await read(id), again);
});

test('POST /leases/revoke with agent revokes all its active leases and returns their number', async () => {
  const one = await service.agent('bulk-1', { 'bulk/*': ['retrieve'] });
  const two = await service.agent('bulk-2', { 'bulk/*': ['retrieve'] });
  const ids = [await lend(one, 'bulk/a'), await lend(one, 'bulk/b')];
  const kept = await lend(two, 'bulk/a');
  await one.delete(`${LEASES}/${ids[0]}`);
  assert.deepEqual(dataOf(await admin.post(`${LEASES}/revoke`, { agent: 'bulk-1' }), 200, 'revoked'), { revoked: 1 });
  for (const id of ids) assert.equal((await read(id)).status, 'revoked');
  assert.equal((await read(kept)).status, 'active');
  assert.deepEqual(dataOf(await admin.post(`${LEASES}/revoke`, { agent: 'bulk-1' }), 200, 'revoked'), { revoked: 0 });
  assert.equal((await read(await lend(one, 'bulk/a'))).status, 'active');
});

test('POST /leases/revoke with path, or with both, revokes only the matching leases', async () => {
  const one = await service.agent('both-1', { 'both/*': ['retrieve'] });
  const two = await service.agent('both-2', { 'both/*': ['retrieve'] });
  const [oneA, oneB, twoA] = [await lend(one, 'both/a'), await lend(one, 'both/b'), await lend(two, 'both/a')];
  const statuses = async () => Promise.all([oneA, oneB, twoA].map(async (id) => (await read(id)).status));
  const revoke = async (body: unknown) => dataOf(await admin.post(`${LEASES}/revoke`, body), 200, 'revoked').revoked;
  assert.equal(await revoke({ agent: 'both-1', path: 'both/a' }), 1);
  assert.deepEqual(await statuses(), ['revoked', 'active', 'active']);
  assert.equal(await revoke({ path: 'both/a' }), 1);
  assert.deepEqual(await statuses(), ['revoked', 'active', 'revoked']);
  for (const body of [{ agent: 'nobody' }, { path: 'no/such' }, { agent: 'both-1', path: 'no/such' }]) {
    assert.equal(await revoke(body), 0);
  }
  assert.deepEqual(await statuses(), ['revoked', 'active', 'revoked']);
});

test('an agent’s bulk revocation covers only its own leases', async () => {
  const own = await service.agent('bulk-own', { 'bulkown/*': ['retrieve'] });
  const mine = await lend(own, 'bulkown/a');
  const theirs = await lend(admin, 'bulkown/a');
  assertRejected(await own.post(`${LEASES}/revoke`, { agent: 'bulk-2' }), 'ACCESS_DENIED');
  assertRejected(await own.post(`${LEASES}/revoke`, { agent: 'admin', path: 'bulkown/a' }), 'ACCESS_DENIED');
  const { revoked } = dataOf(await own.post(`${LEASES}/revoke`, { path: 'bulkown/a' }), 200, 'revoked');
  assert.equal(revoked, 1);
  assert.deepEqual([(await read(mine)).status, (await read(theirs)).status], ['revoked', 'active']);
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

test('renewing an expired or revoked lease is 409 LEASE_ENDED', async () => {
  const agent = await service.agent('ended', { 'ended/*': ['retrieve'] });
  const expired = await lend(agent, 'ended/a', '?ttl=1');
  const revoked = await lend(agent, 'ended/b');
  const deleted = await lend(agent, 'ended/c');
  await agent.delete(`${LEASES}/${revoked}`);
  await admin.delete('/api/v1/credentials/ended/c');
  await pass();
  for (const id of [expired, revoked, deleted])
    assertRejected(await agent.post(`${LEASES}/${id}/renew`), 'LEASE_ENDED');
  assertRejected(await agent.post(`${LEASES}/${NO_LEASE}/renew`), 'NOT_FOUND');
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
