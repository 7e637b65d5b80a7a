// Slow, stopped or silently lost networks and nodes, and exhausted connections.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestResponse } from '../kit/client.ts';
import { startCluster, startNodes } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { startPostgres } from '../kit/postgres.ts';
import { querySql } from '../kit/postmaster.ts';
import { startProxy } from '../kit/proxy.ts';
import type { TestService } from '../kit/service.ts';
import { untilWell } from './crash-load.ts';

interface Timed<T = TestResponse> {
  readonly value: T;
  readonly ms: number;
}

async function timed<T>(work: Promise<T>): Promise<Timed<T>> {
  const startedAt = performance.now();
  const value = await work;
  return { value, ms: performance.now() - startedAt };
}

async function assertValid(nodes: readonly Pick<TestService, 'admin'>[]): Promise<void> {
  for (const { admin } of nodes) assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
}

test('a node stopped while it holds the lock delays others by two seconds, and issues nothing when it resumes', async (t) => {
  const url = await newDatabase(t);
  const proxy = await startProxy(t, url);
  const { nodes } = await startCluster(t, {
    nodes: 3,
    url,
    urlOf: (node) => (node === 0 ? proxy.url : url),
  });
  const [stopped, ...others] = nodes;
  assert.ok(stopped);
  assert.equal((await stopped.admin.post('/api/v1/credentials', { path: 'a', value: 'the value' })).status, 201);
  // The commit of the node does not arrive, so that it is stopped while it holds the lock.
  const held = proxy.holdNextCommit();
  const late = stopped.admin.get('/api/v1/credentials/a');
  await held;
  stopped.child.kill('SIGSTOP');
  t.after(() => stopped.child.kill('SIGCONT'));
  const waited = await Promise.all(others.map(({ admin }) => timed(admin.get('/api/v1/credentials/a'))));
  for (const { value } of waited) assert.equal(value.status, 200, value.text);
  t.diagnostic(`the others waited ${waited.map(({ ms }) => Math.round(ms)).join(' and ')} ms`);
  // While that node is stopped, the others continue as usual.
  for (const { admin } of others) {
    assert.equal((await admin.delete('/api/v1/credentials/b')).status, 404);
  }
  await sleep(500);
  stopped.child.kill('SIGCONT');
  const answer = await late;
  assert.equal(answer.status, 503, answer.text);
  assert.doesNotMatch(answer.text, /the value/);
  await untilWell(nodes);
  assert.equal((await stopped.admin.get('/api/v1/credentials/a')).body.data.value, 'the value');
  const entries = (await stopped.admin.get('/api/v1/audit?resource=a&action=retrieve')).body.meta.total;
  assert.equal(entries, 3);
  await assertValid(nodes);
});

test('a latency of one second only slows a node; three seconds make it reject requests while others continue', async (t) => {
  const url = await newDatabase(t);
  const proxy = await startProxy(t, url);
  const { nodes } = await startNodes(t, { nodes: 2, url, urlOf: (node) => (node === 0 ? proxy.url : url) });
  const [far, near] = nodes;
  assert.ok(far && near);
  assert.equal((await far.admin.post('/api/v1/credentials', { path: 'a', value: 'the value' })).status, 201);
  proxy.delay(500);
  const [slow, other] = await Promise.all([
    timed(far.admin.get('/api/v1/credentials/a')),
    timed(sleep(200).then(() => near.admin.get('/api/v1/credentials/a'))),
  ]);
  assert.equal(slow.value.body.data.value, 'the value');
  assert.equal(other.value.status, 200);
  t.diagnostic(`with 1 s there and back: ${Math.round(slow.ms)} ms, on the other node ${Math.round(other.ms)} ms`);
  proxy.delay(1500);
  const refused = await far.admin.get('/api/v1/credentials/a');
  assert.equal(refused.status, 503, refused.text);
  assert.doesNotMatch(refused.text, /the value/);
  assert.equal((await near.admin.get('/api/v1/credentials/a')).status, 200);
  proxy.delay(0);
  await untilWell(nodes);
  assert.equal((await far.admin.get('/api/v1/credentials/a')).status, 200);
  await assertValid(nodes);
});

test('a network that drops everything is detected within seconds', async (t) => {
  const url = await newDatabase(t);
  const proxy = await startProxy(t, url);
  const { nodes } = await startNodes(t, { nodes: 1, url, urlOf: () => proxy.url });
  const [node] = nodes;
  assert.ok(node);
  assert.equal((await node.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  proxy.swallow();
  const { value, ms } = await timed(node.admin.get('/api/v1/credentials/a'));
  assert.equal(value.status, 503);
  t.diagnostic(`given up after ${Math.round(ms)} ms`);
  proxy.close();
  proxy.open();
  await untilWell(nodes);
});

test('a node rejects requests while the server has no free connection, and recovers afterwards', async (t) => {
  const server = await startPostgres(t, { settings: { max_connections: '25', superuser_reserved_connections: '5' } });
  await server.query("CREATE ROLE node LOGIN PASSWORD 'node' ; GRANT ALL ON DATABASE postgres TO node");
  const url = server.url().replace(/\/\/[^@]+@/, '//node:node@');
  const { nodes } = await startNodes(t, { nodes: 1, url });
  const [node] = nodes;
  assert.ok(node);
  assert.equal((await node.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  // Other clients take every connection that it releases.
  await server.query('ALTER ROLE node CONNECTION LIMIT 0');
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'node'");
  for (let tries = 0; tries < 5; tries++) {
    const { status, text } = await node.admin.get('/api/v1/credentials/a');
    assert.equal(status, 503, text);
  }
  assert.equal((await node.admin.get('/api/v1/health')).body.data.status, 'failing');
  await server.query('ALTER ROLE node CONNECTION LIMIT -1');
  await untilWell(nodes);
  assert.equal((await node.admin.get('/api/v1/credentials/a')).status, 200);
});

test("while a node's read connections are all in use, reads wait or are rejected, and retrievals continue", async (t) => {
  const url = await newDatabase(t);
  const { nodes } = await startNodes(t, { nodes: 1, url });
  const [node] = nodes;
  assert.ok(node);
  assert.equal((await node.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  // Only lists read this table.
  const held = querySql(url, 'BEGIN; LOCK TABLE leasehold.access_counts; SELECT pg_sleep(4); COMMIT');
  await sleep(200);
  const lists = Array.from({ length: 20 }, () => node.admin.get('/api/v1/credentials'));
  await sleep(300);
  for (let i = 0; i < 20; i++) {
    const { status, text } = await node.admin.get('/api/v1/credentials/a');
    assert.equal(status, 200, text);
  }
  for (const { status, text } of await Promise.all(lists)) assert.ok(status === 200 || status === 503, text);
  await held;
  assert.equal((await node.admin.get('/api/v1/credentials')).body.data[0].access_count, 20);
});
