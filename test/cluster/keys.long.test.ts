// The keys of several nodes: concurrent starts create one vault, and every node follows a rotation with its next batch.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { startProcess } from '../kit/process.ts';
import { startProxy } from '../kit/proxy.ts';

const PATH = '/api/v1/credentials';

test('data, root and audit keys rotate on any node while all serve, without a failed request', async () => {
  const { nodes } = await startNodes({ after }, { nodes: 3 });
  const [one] = nodes;
  assert.ok(one);
  for (let n = 0; n < 20; n++) {
    assert.equal((await one.admin.post(PATH, { path: `shared/${n}`, value: `value ${n}` })).status, 201);
  }
  let isOver = false;
  const statuses = new Set<number>();
  const loads = nodes.map(async ({ admin }, index) => {
    for (let n = index; !isOver; n++) {
      const { status, body } = await admin.get(`${PATH}/shared/${n % 20}`);
      statuses.add(status);
      assert.equal(body.data?.value, `value ${n % 20}`);
    }
  });
  for (const key of ['data', 'root', 'audit', 'root', 'data']) {
    for (const { admin } of nodes) assert.equal((await admin.post('/api/v1/key/rotate', { key })).status, 200, key);
  }
  for (const { admin } of nodes) {
    const name = `slot-${nodes.findIndex((node) => node.admin === admin)}`;
    assert.equal((await admin.post('/api/v1/key/slots', { name, kind: 'file' })).status, 201);
  }
  isOver = true;
  await Promise.all(loads);
  assert.deepEqual([...statuses], [200]);
  for (const { admin } of nodes) {
    assert.equal((await admin.get('/api/v1/key/slots')).body.data.length, 4);
    const { valid, state } = (await admin.get('/api/v1/audit/verify?values=true')).body.data;
    assert.deepEqual([valid, state.problems], [true, []]);
  }
});

test('a node that cannot reach the database is locked, although that cannot be recorded', async (t) => {
  const url = await newDatabase(t);
  const proxy = await startProxy(t, url);
  const { nodes } = await startNodes(t, { nodes: 1, url, urlOf: () => proxy.url });
  const [node] = nodes;
  assert.ok(node);
  // From the first admin on, each use of the token is recorded before the operation. This call is the exception.
  await addOperator(node, 'first-admin', ['admin']);
  proxy.close();
  const { status, body } = await node.admin.post('/api/v1/lock', {});
  assert.deepEqual([status, body.error?.code], [503, 'UNAVAILABLE']);
  assert.match(body.error.message, /^The vault was locked, but the audit log could not record that/);
  assert.deepEqual((await node.anonymous.get('/api/v1/health')).body, { data: { status: 'locked' } });
  proxy.open();
  assert.equal((await node.admin.get('/api/v1/audit')).body.error?.code, 'VAULT_LOCKED');
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
