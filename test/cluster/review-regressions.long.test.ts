// Regressions found by a hostile review: a removed head record, database settings that weaken a guarantee, idle nodes,
// a high-water time ahead of the clock, rows altered directly, connection attempts during an outage.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient, logIn, readAgentKey, verifyAs } from '../kit/client.ts';
import { startCluster, startNodes } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { until } from '../kit/log-receivers.ts';
import { startPostgres } from '../kit/postgres.ts';
import { querySql } from '../kit/postmaster.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { startProxy } from '../kit/proxy.ts';
import { scaled } from '../kit/scale.ts';
import { scrape } from '../kit/scrape.ts';
import type { TestService } from '../kit/service.ts';
import { untilWell } from './crash-load.ts';

const policyOf = (name: string, agent: string) => ({
  name,
  principal: `agent:${agent}`,
  resources: ['*'],
  actions: ['retrieve'],
});

async function made(node: Pick<TestService, 'admin'>, path: string, body: object): Promise<void> {
  const { status, text } = await node.admin.post(`/api/v1/${path}`, body);
  assert.equal(status, 201, text);
}

test('nodes whose head record was removed decide nothing: it held the digest of agents and policies', async (t) => {
  const { url, nodes } = await startNodes(t, { nodes: 2 });
  const [one, two] = nodes;
  assert.ok(one && two);
  await made(one, 'credentials', { path: 'a', value: 'the value' });
  await made(one, 'agents', { name: 'bot' });
  await made(one, 'policies', policyOf('p', 'bot'));
  const token = await logIn(one.address, 'bot', readAgentKey(one.dataDir, 'bot'));
  const at = (node: TestService) => createClient(node.address, token).get('/api/v1/credentials/a');
  assert.deepEqual([(await at(one)).status, (await at(two)).status], [200, 200]);
  await querySql(url, 'CREATE TABLE kept AS SELECT * FROM leasehold.audit_head; DELETE FROM leasehold.audit_head');
  for (const node of [one, two]) {
    for (let attempt = 0; attempt < 3; attempt++) assert.equal((await at(node)).status, 503);
    assert.deepEqual((await node.admin.get('/api/v1/health')).body, { data: { status: 'failing' } });
  }
  await querySql(url, 'INSERT INTO leasehold.audit_head SELECT * FROM kept');
  await untilWell([one, two]);
  assert.deepEqual([(await at(one)).status, (await at(two)).status], [200, 200]);
});

test('the service enforces synchronous commits on a database that defaults to asynchronous ones', async (t) => {
  const server = await startPostgres(t, { settings: { wal_writer_delay: '10s' } });
  await server.query('ALTER DATABASE postgres SET synchronous_commit = off');
  const cluster = await startNodes(t, { nodes: 1, url: server.url() });
  const [node] = cluster.nodes;
  assert.ok(node);
  await made(node, 'credentials', { path: 'a', value: 'v' });
  for (let count = 0; count < 20; count++) assert.equal((await node.admin.get('/api/v1/credentials/a')).status, 200);
  await server.kill();
  await server.start();
  await untilWell([node]);
  assert.equal((await node.admin.get('/api/v1/audit?action=retrieve')).body.meta.total, 20);
});

test('a node without requests follows the log too', async (t) => {
  const { url, nodes } = await startCluster(t, { nodes: 2 });
  const [one, two] = nodes;
  assert.ok(one && two);
  await made(one, 'credentials', { path: 'a', value: 'v' });
  const { total } = (await one.admin.get('/api/v1/audit?limit=1')).body.meta;
  await until(async () => (seriesValue(await scrape(two.address), 'leasehold_log_seq') ?? 0) >= total);
  // Simulates a failover that lost the entries, with no request to the second node since.
  await querySql(
    url,
    `DELETE FROM leasehold.audit_entries WHERE resource = 'a';
     UPDATE leasehold.audit_head h SET seq = e.seq, hmac = e.hmac
     FROM (SELECT seq, hmac FROM leasehold.audit_entries ORDER BY seq DESC LIMIT 1) e`,
  );
  for (const { admin, output } of [one, two]) {
    await until(async () => (await admin.get('/api/v1/agents')).status === 503);
    await until(() => /the audit log has lost entry \d+, which this node has seen/.test(output()));
  }
});

test('with a high-water time ahead of the database leases end and logins work as usual', async (t) => {
  const { url, nodes } = await startNodes(t, { nodes: 1 });
  const [node] = nodes;
  assert.ok(node);
  await made(node, 'credentials', { path: 'a', value: 'v' });
  await made(node, 'agents', { name: 'bot' });
  await querySql(url, 'UPDATE leasehold.vault SET high_water_time = high_water_time + 3600000');
  const { lease_id } = (await node.admin.get('/api/v1/credentials/a?ttl=2')).body.data;
  await until(async () => (await node.admin.get(`/api/v1/leases/${lease_id}`)).body.data.status === 'expired');
  assert.equal((await verifyAs(node.address, 'bot', readAgentKey(node.dataDir, 'bot'))).status, 200);
});

test('an agent whose row was altered and whose name was registered again is unknown on every node', async (t) => {
  const cluster = await startNodes(t, { nodes: 2 });
  const [one, two] = cluster.nodes;
  assert.ok(one && two);
  await made(one, 'agents', { name: 'bot' });
  const token = await logIn(two.address, 'bot', readAgentKey(one.dataDir, 'bot'));
  await querySql(cluster.url, "UPDATE leasehold.agents SET description = 'altered'");
  await one.stop();
  const again = await cluster.start(one.dataDir);
  await made(again, 'agents', { name: 'bot' });
  for (const { address } of [again, two]) {
    assert.equal((await createClient(address, token).get('/auth/session')).status, 401);
  }
  const [ours, theirs] = await Promise.all([again, two].map(({ admin }) => admin.get('/api/v1/agents')));
  assert.equal(ours?.text, theirs?.text);
  assert.equal(theirs?.body.data.length, 1);
});

test('while the database is unreachable a node tries to connect only a few times a second', async (t) => {
  const url = await newDatabase(t);
  const proxy = await startProxy(t, url);
  const { nodes } = await startNodes(t, { nodes: 1, url, urlOf: () => proxy.url });
  const [node] = nodes;
  assert.ok(node);
  proxy.close();
  const before = proxy.refused;
  const startedAt = performance.now();
  let requests = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (; requests < scaled(200, 2000); requests++)
        assert.equal((await node.admin.get('/api/v1/agents')).status, 503);
    }),
  );
  const [tries, seconds] = [proxy.refused - before, (performance.now() - startedAt) / 1000];
  t.diagnostic(`${tries} tries in ${seconds} s, with ${requests} requests`);
  assert.ok(tries > 0 && tries < 2 + 20 * seconds, `${tries} tries in ${seconds} s`);
  proxy.open();
  await untilWell(nodes);
});
