// What nodes share, and what each node has separately.

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { headMac } from '../../src/crypto/chain.ts';
import { readConfiguration } from '../../src/server/configuration.ts';
import { readVaultKeys } from '../../src/server/offline-keys.ts';
import { toHead } from '../../src/store/audit-log.ts';
import { createClient, logIn, readAgentKey, verifyAs } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { keepAlive } from '../kit/keep-alive.ts';
import { until } from '../kit/log-receivers.ts';
import { querySql } from '../kit/postmaster.ts';
import { grant, newLane, logIn as openSession, RACES, register, run } from './deletion-races.ts';

const ROUNDS = 3;
const REQUESTS = 10;

const cluster = await startNodes({ after }, { nodes: 2 });
const [one, two] = cluster.nodes;
assert.ok(one && two);
const calls = cluster.nodes.map(({ address }) => keepAlive({ after }, address));
const [first, second] = calls;
assert.ok(first && second);

test('a change on one node is visible on the others immediately: credentials, policies, agents, sessions, leases', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `seen-${round}`;
    const path = `seen/${name}`;
    assert.equal((await one.admin.post('/api/v1/credentials', { path, value: name })).status, 201);
    assert.equal((await two.admin.post('/api/v1/agents', { name })).status, 201);
    const policy = { name, principal: `agent:${name}`, resources: [path], actions: ['retrieve', 'list'] };
    assert.equal((await one.admin.post('/api/v1/policies', policy)).status, 201);
    const token = await logIn(one.address, name, readAgentKey(two.dataDir, name));
    const got = await createClient(two.address, token).get(`/api/v1/credentials/${path}`);
    assert.equal(got.body.data.value, name, got.text);
    const lease = await createClient(two.address, token).get(`/api/v1/leases/${got.body.data.lease_id}`);
    assert.equal(lease.body.data.status, 'active');
    const listed = await createClient(one.address, token).get('/api/v1/credentials');
    assert.deepEqual([listed.body.data.length, listed.body.data[0].access_count], [1, 1]);
    assert.equal((await one.admin.delete(`/api/v1/agents/${name}`)).status, 204);
    assert.equal((await createClient(two.address, token).get('/auth/session')).status, 401);
  }
});

test('a challenge of one node can be used on any other, once', async () => {
  assert.equal((await one.admin.post('/api/v1/agents', { name: 'once' })).status, 201);
  const key = readAgentKey(one.dataDir, 'once');
  for (const { address } of cluster.nodes) assert.equal((await verifyAs(address, 'once', key)).status, 200);
  const anonymous = cluster.nodes.map(({ address }) => createClient(address, null));
  for (let round = 0; round < ROUNDS; round++) {
    const [issuer = createClient(one.address, null)] = anonymous.slice(round % 2);
    const { challenge_id, nonce } = (await issuer.post('/auth/challenge', { agent_name: 'once' })).body.data;
    const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
    const proof = { challenge_id, agent_name: 'once', signature };
    const statuses = await Promise.all(anonymous.map(async (node) => (await node.post('/auth/verify', proof)).status));
    assert.deepEqual(statuses.sort(), [200, 401]);
  }
});

test('all nodes write one chain without missing or duplicate sequence numbers', async () => {
  const made = 20;
  await Promise.all(
    Array.from({ length: made }, (_, index) =>
      cluster.nodes[index % 2]?.admin.post('/api/v1/credentials', { path: `chain/${index}`, value: 'v' }),
    ),
  );
  const exported = (await two.admin.get('/api/v1/audit/export')).text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    exported.map(({ seq }) => seq),
    exported.map((_, index) => index + 1),
  );
  const stored = exported.filter(({ resource }) => resource.startsWith('chain/'));
  assert.equal(stored.length, made);
  for (const { admin } of cluster.nodes) {
    const { data } = (await admin.get('/api/v1/audit/verify')).body;
    assert.deepEqual([data.valid, data.entries], [true, exported.length]);
  }
});

test('an agent’s private key is on the node that registered it, and is deleted when another node deregisters it', async () => {
  assert.equal((await one.admin.post('/api/v1/agents', { name: 'keyed' })).status, 201);
  const at = (node: typeof one) => existsSync(join(node.dataDir, 'agents', 'keyed'));
  assert.deepEqual(cluster.nodes.map(at), [true, false]);
  assert.equal((await two.admin.delete('/api/v1/agents/keyed')).status, 204);
  // The node learns of it with its next batch, and removes the files after that.
  assert.equal((await one.admin.get('/api/v1/agents/keyed')).status, 404);
  await until(() => !at(one));
  assert.deepEqual(cluster.nodes.map(at), [false, false]);
});

test('many policy changes between two batches of a node all arrive, including deletions', async () => {
  const policyOf = (index: number) => ({
    name: `many-${index}`,
    principal: 'agent:many',
    resources: [`many/${index}`],
    actions: ['retrieve'],
  });
  for (let index = 0; index < 30; index++) {
    assert.equal((await one.admin.post('/api/v1/policies', policyOf(index))).status, 201);
    if (index % 3 === 0) assert.equal((await one.admin.delete(`/api/v1/policies/many-${index}`)).status, 204);
    if (index % 9 === 0) assert.equal((await one.admin.post('/api/v1/policies', policyOf(index))).status, 201);
  }
  const expected = (await one.admin.get('/api/v1/policies')).body;
  assert.deepEqual((await two.admin.get('/api/v1/policies')).body, expected);
});

test('a node that missed more than the recorded removals reloads all agents and policies', async () => {
  const before = (await two.admin.get('/api/v1/policies')).body.data.length;
  const far = { name: 'far', principal: 'agent:a', resources: ['*'], actions: ['list'] };
  assert.equal((await one.admin.post('/api/v1/policies', far)).status, 201);
  assert.equal((await one.admin.delete('/api/v1/policies/many-1')).status, 204);
  // Simulates ten thousand batches whose changes and removals were already pruned.
  const [row] = await querySql(cluster.url, 'SELECT * FROM leasehold.audit_head');
  const head = toHead(row) ?? assert.fail();
  const later = { ...head, epoch: head.epoch + 20_000 };
  const keys = await readVaultKeys(
    readConfiguration(['--root-key-file', cluster.rootKeyFile], { LEASEHOLD_DATABASE_URL: cluster.url }) ??
      assert.fail(),
  );
  await querySql(
    cluster.url,
    `UPDATE leasehold.audit_head SET epoch = ${later.epoch}, mac = '${headMac(keys.audit, later)}';
     DELETE FROM leasehold.control_removals`,
  );
  const policies = (await two.admin.get('/api/v1/policies')).body.data.map(({ name }: { name: string }) => name);
  assert.equal(policies.length, before);
  assert.deepEqual([policies.includes('far'), policies.includes('many-1')], [true, false]);
});

test('rows of removals that were written outside change nothing and make no batch fail', async () => {
  const [row] = await querySql(cluster.url, 'SELECT epoch FROM leasehold.audit_head');
  const next = Number(row?.['epoch']) + 1;
  const before = (await two.admin.get('/api/v1/policies')).body.data;
  for (const resource of ['x', '', '__proto__', 'constructor', 'session', 'credential']) {
    for (const epoch of [next, next + 5, 9_000_000_000_000]) {
      await querySql(
        cluster.url,
        `INSERT INTO leasehold.control_removals VALUES (${epoch}, '${resource}', 'an id', 'far') ON CONFLICT DO NOTHING`,
      );
    }
  }
  const extra = { name: 'extra', principal: 'agent:a', resources: ['*'], actions: ['list'] };
  for (const [writer, reader] of [
    [one, two],
    [two, one],
  ]) {
    assert.equal((await writer?.admin.post('/api/v1/policies', extra))?.status, 201);
    assert.equal((await reader?.admin.get('/api/v1/policies/extra'))?.status, 200);
    assert.equal((await writer?.admin.delete('/api/v1/policies/extra'))?.status, 204);
    assert.deepEqual((await reader?.admin.get('/api/v1/policies'))?.body.data, before);
  }
});

test('a wrong root key is rejected and changes nothing', async () => {
  const file = `${cluster.rootKeyFile}.wrong`;
  writeFileSync(file, `${Buffer.alloc(32, 1).toString('base64')}\n`, { mode: 0o600 });
  const before = (await one.admin.get('/api/v1/audit?limit=1')).body.meta.total;
  await assert.rejects(cluster.start(undefined, ['--root-key-file', file]), /is not the root key of this vault/);
  assert.equal((await one.admin.get('/api/v1/audit?limit=1')).body.meta.total, before);
});

test('parallel requests with a new session of another node are accepted, and its end ends it on every node', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const lane = newLane(`parallel-${round}`, one.adminToken, calls);
    await register(lane, first);
    await openSession(lane, first, first);
    const stored = { path: lane.path, value: 'v' };
    assert.equal((await first('POST', '/api/v1/credentials', lane.adminToken, stored)).status, 201);
    await grant(lane, first);
    const retrieve = (): Promise<{ status: number }> => second('GET', `/api/v1/credentials/${lane.path}`, lane.token);
    const answers: readonly { status: number }[] = await Promise.all(Array.from({ length: REQUESTS }, retrieve));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const concurrent = Array.from({ length: REQUESTS }, () => second('GET', '/auth/session', lane.token));
    assert.equal((await second('DELETE', '/auth/session', lane.token)).status, 204);
    await Promise.all(concurrent);
    for (const call of calls) assert.equal((await call('GET', '/auth/session', lane.token)).status, 401);
  }
});

for (const race of RACES) {
  test(`after the deletion of ${race.what} on one node no use succeeds on any node`, async () => {
    const lane = newLane(`race-${RACES.indexOf(race)}`, one.adminToken, calls);
    assert.equal((await one.admin.post('/api/v1/credentials', { path: lane.path, value: 'v' })).status, 201);
    if (race.what !== 'an agent') {
      await register(lane, first);
      await openSession(lane, first, first);
    }
    if (race.what !== 'a policy') await grant(lane, first);
    for (let round = 0; round < 2 * ROUNDS; round++) {
      const { late } = await run(race, lane, round % 2, (round + 1) % 2);
      for (const status of late) assert.ok([401, 403, 409].includes(status), `round ${round}: ${late.join(', ')}`);
    }
  });
}
