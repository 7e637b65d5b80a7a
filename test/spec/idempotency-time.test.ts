// How long an idempotency record is used: 24 hours, across restarts. SOURCE: docs/decisions.md, "Idempotency".

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { selectRows } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const CREDENTIALS = '/api/v1/credentials';
const DAY_MS = 24 * 3600 * 1000;
const KEY = { 'idempotency-key': 'one-and-the-same' };
const POLICY = { name: 'p', principal: 'agent:x', resources: ['x'], actions: ['retrieve'] };

const store = (as: Client) => as.call('POST', CREDENTIALS, { path: 'a', value: 'v' }, KEY);
const versionOf = async (as: Client): Promise<number> =>
  (await as.get(`${CREDENTIALS}/a?view=metadata`)).body.data.versions.length;

test('a repeat within 24 hours returns the stored response; later it is a new request', async (t) => {
  const clock = startTestClock(t);
  const { admin } = await startTestService(t);
  const first = await store(admin);
  await clock.move(DAY_MS - 60_000);
  assert.equal((await store(admin)).text, first.text);
  assert.equal(await versionOf(admin), 1);
  // The vault's clock advances while the wall clock is stopped.
  await clock.move(120_000);
  assert.equal((await store(admin)).status, 201);
  assert.equal(await versionOf(admin), 2);
  await clock.move(DAY_MS - 60_000);
  await store(admin);
  assert.equal(await versionOf(admin), 2);
});

test('a repeat after a restart returns the stored response, also with the administrator’s new token', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const one = await startTestService(t, [], dataDir);
  const first = await store(one.admin);
  const agent = await one.agent('ci', { 'ci/*': ['store'] });
  const asAgent = (as: Client) => as.call('POST', CREDENTIALS, { path: 'ci/a', value: 'v' }, KEY);
  const firstOfAgent = await asAgent(agent);
  await one.stop();
  const two = await startTestService(t, [], dataDir);
  assert.notEqual(two.adminToken, one.adminToken);
  assert.deepEqual([(await store(two.admin)).text, await versionOf(two.admin)], [first.text, 1]);
  assert.equal((await asAgent(two.as(agent.token))).text, firstOfAgent.text);
});

test('the largest responses, up to 7 KiB or 130 KiB for a policy of 256 patterns, are stored in full', async (t) => {
  const { admin, dataDir } = await startTestService(t);
  const longest = `${'s'.repeat(128)}/`.repeat(3);
  const resources = Array.from({ length: 256 }, (_, n) => `${longest}${'s'.repeat(122)}${100 + n}`);
  const policy = { ...POLICY, name: 'p'.repeat(128), principal: `agent:${'a'.repeat(63)}`, resources };
  // Escaped characters take the most bytes in JSON.
  const description = '\u0001'.repeat(1024);
  const credential = { path: resources[0], value: 'v', type: 't'.repeat(64), description };
  const sizes: number[] = [];
  const known = new Set<unknown>();
  for (const [path, body] of [
    ['/api/v1/policies', policy],
    [CREDENTIALS, credential],
    ['/api/v1/agents', { name: 'a'.repeat(63), description }],
  ] as const) {
    const ask = () => admin.call('POST', path, body, { 'idempotency-key': path });
    const first = await ask();
    assert.equal(first.status, 201, first.text);
    assert.equal((await ask()).text, first.text);
    const rows = await selectRows(dataDir, 'SELECT id, octet_length(reply) AS size FROM idempotency_records');
    const added = rows.filter(({ id }) => !known.has(id));
    assert.equal(added.length, 1);
    for (const { id, size } of added) {
      known.add(id);
      sizes.push(Number(size) / 1024);
    }
  }
  const [ofPolicy = 0, ofCredential = 0, ofAgent = 0] = sizes;
  assert.equal(ofPolicy > 128 && ofPolicy < 130, true, `${ofPolicy} KiB`);
  for (const size of [ofCredential, ofAgent]) assert.equal(size > 6 && size < 7, true, `${size} KiB`);
});
