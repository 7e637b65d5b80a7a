// What nodes share, and what each node has separately.

import assert from 'node:assert/strict';
import { randomBytes, randomInt, sign } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { headMac } from '../../src/crypto/chain.ts';
import { readConfiguration } from '../../src/server/configuration.ts';
import { readVaultKeys } from '../../src/server/offline-keys.ts';
import { toHead } from '../../src/store/audit-log.ts';
import { createClient, logIn, readAgentKey, verifyAs } from '../kit/client.ts';
import { startCluster } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { querySql } from '../kit/postmaster.ts';
import { startProcess } from '../kit/process.ts';

const cluster = await startCluster({ after }, { nodes: 3 });
const [one, two, three] = cluster.nodes;
assert.ok(one && two && three);

test('a change on one node is visible on the others immediately: credentials, policies, agents, sessions, leases', async () => {
  for (let round = 0; round < 30; round++) {
    const name = `seen-${round}`;
    const path = `seen/${name}`;
    assert.equal((await one.admin.post('/api/v1/credentials', { path, value: name })).status, 201);
    assert.equal((await two.admin.post('/api/v1/agents', { name })).status, 201);
    const policy = { name, principal: `agent:${name}`, resources: [path], actions: ['retrieve', 'list'] };
    assert.equal((await three.admin.post('/api/v1/policies', policy)).status, 201);
    const token = await logIn(one.address, name, readAgentKey(two.dataDir, name));
    const got = await createClient(three.address, token).get(`/api/v1/credentials/${path}`);
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
  for (let round = 0; round < 20; round++) {
    const [issuer = createClient(one.address, null)] = anonymous.slice(round % 3);
    const { challenge_id, nonce } = (await issuer.post('/auth/challenge', { agent_name: 'once' })).body.data;
    const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
    const proof = { challenge_id, agent_name: 'once', signature };
    const statuses = await Promise.all(anonymous.map(async (node) => (await node.post('/auth/verify', proof)).status));
    assert.deepEqual(statuses.sort(), [200, 401, 401]);
  }
});

test('all nodes write one chain without missing or duplicate sequence numbers', async () => {
  const made = 60 + randomInt(20);
  await Promise.all(
    Array.from({ length: made }, (_, index) =>
      cluster.nodes[index % 3]?.admin.post('/api/v1/credentials', { path: `chain/${index}`, value: 'v' }),
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
  assert.equal(new Set(exported.map(({ request_id }) => String(request_id).split('-')[0])).size >= 3, true);
  for (const { admin } of cluster.nodes) {
    const { data } = (await admin.get('/api/v1/audit/verify')).body;
    assert.deepEqual([data.valid, data.entries], [true, exported.length]);
  }
});

test('an agent’s private key is on the node that registered it, and is deleted when another node deregisters it', async () => {
  assert.equal((await one.admin.post('/api/v1/agents', { name: 'keyed' })).status, 201);
  const at = (node: typeof one) => existsSync(join(node.dataDir, 'agents', 'keyed'));
  assert.deepEqual(cluster.nodes.map(at), [true, false, false]);
  assert.equal((await two.admin.delete('/api/v1/agents/keyed')).status, 204);
  // The node learns of it with its next batch, and removes the files after that.
  assert.equal((await one.admin.get('/api/v1/agents/keyed')).status, 404);
  await until(() => !at(one));
  assert.deepEqual(cluster.nodes.map(at), [false, false, false]);
});

test('many policy changes between two batches of a node all arrive, including deletions', async () => {
  const policyOf = (index: number) => ({
    name: `many-${index}`,
    principal: 'agent:many',
    resources: [`many/${index}`],
    actions: ['retrieve'],
  });
  for (let index = 0; index < 120; index++) {
    assert.equal((await one.admin.post('/api/v1/policies', policyOf(index))).status, 201);
    if (index % 3 === 0) assert.equal((await one.admin.delete(`/api/v1/policies/many-${index}`)).status, 204);
    if (index % 9 === 0) assert.equal((await one.admin.post('/api/v1/policies', policyOf(index))).status, 201);
  }
  const expected = (await one.admin.get('/api/v1/policies')).body;
  for (const { admin } of [two, three]) assert.deepEqual((await admin.get('/api/v1/policies')).body, expected);
});

test('a node that missed more than the recorded removals reloads all agents and policies', async () => {
  const before = (await three.admin.get('/api/v1/policies')).body.data.length;
  assert.equal(
    (
      await one.admin.post('/api/v1/policies', {
        name: 'far',
        principal: 'agent:a',
        resources: ['*'],
        actions: ['list'],
      })
    ).status,
    201,
  );
  assert.equal((await one.admin.delete('/api/v1/policies/many-1')).status, 204);
  // As if ten thousand batches had changed something meanwhile, and their removals were pruned.
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
  const policies = (await three.admin.get('/api/v1/policies')).body.data.map(({ name }: { name: string }) => name);
  assert.equal(policies.length, before);
  assert.deepEqual([policies.includes('far'), policies.includes('many-1')], [true, false]);
});

test('a wrong root key is rejected and changes nothing', async () => {
  const file = `${cluster.rootKeyFile}.wrong`;
  writeFileSync(file, `${Buffer.alloc(32, 1).toString('base64')}\n`, { mode: 0o600 });
  const before = (await one.admin.get('/api/v1/audit?limit=1')).body.meta.total;
  await assert.rejects(cluster.start(undefined, ['--root-key-file', file]), /is not the root key of this vault/);
  assert.equal((await one.admin.get('/api/v1/audit?limit=1')).body.meta.total, before);
});

test('nodes that start concurrently on an empty database create one vault', async (t) => {
  const url = await newDatabase(t);
  const directory = temporaryDirectory(t);
  const rootKeyFile = join(directory, 'root.key');
  writeFileSync(rootKeyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const started = await Promise.all(
    [1, 2, 3, 4].map((node) =>
      startProcess(t, join(directory, `node-${node}`), ['--database', url, '--root-key-file', rootKeyFile]),
    ),
  );
  const totals = await Promise.all(
    started.map(async ({ address, adminToken }) => {
      const { body } = await createClient(address, adminToken).get('/api/v1/audit?event_type=service.start');
      return body.meta.total;
    }),
  );
  assert.deepEqual(totals, [4, 4, 4, 4]);
});
