// A backup contains the agents' keys of its snapshot, even if keys are rotated while it is taken.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { verifyBackup } from '../../src/backup/file.ts';
import { generateAgentKeys } from '../../src/crypto/signatures.ts';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import { readAgentKey, verifyAs } from '../kit/client.ts';
import type { TestService } from '../kit/service.ts';
import { backUp, KINDS, newPlace, OPENER, type Place, restoreTo, startAt } from './fixture.ts';

type ReadAll = FsAgentKeyStore['readAll'];

/** Calls `before` before the service reads the files of agents' keys for a backup, and `after` after it. */
function aroundReading(
  t: TestContext,
  before: () => Promise<void>,
  after = async (): Promise<void> => undefined,
): void {
  const { readAll } = FsAgentKeyStore.prototype;
  t.mock.method(FsAgentKeyStore.prototype, 'readAll', async function (this: FsAgentKeyStore): ReturnType<ReadAll> {
    await before();
    const keys = await readAll.call(this);
    await after();
    return keys;
  });
}

async function rotateAgent({ admin }: TestService): Promise<void> {
  const { status, text } = await admin.post('/api/v1/agents/worker/rotate', { grace_seconds: 0 });
  assert.equal(status, 200, text);
}

/** Asserts that the agent of a restored backup logs in with the key that was restored. */
async function assertLogsIn(t: TestContext, file: string, place: Place): Promise<void> {
  const { out } = await restoreTo(t, file, place);
  assert.match(out, /\nThe private keys of 1 agents were written to \S+\.\n/);
  assert.doesNotMatch(out, /WARNING/);
  const restored = await startAt(t, place);
  assert.equal((await verifyAs(restored.address, 'worker', readAgentKey(place.dataDir, 'worker'))).status, 200);
}

for (const kind of KINDS) {
  test(`on ${kind} an agent whose key and whose vault's keys are rotated during the backup logs in after the restore`, async (t) => {
    const source = await newPlace(t, kind);
    const service = await startAt(t, source);
    await service.agent('worker');
    await service.admin.post('/api/v1/credentials', { path: 'a', value: 'first' });
    aroundReading(t, async () => {
      await rotateAgent(service);
      for (const key of ['data', 'root', 'data']) {
        assert.equal((await service.admin.post('/api/v1/key/rotate', { key })).status, 200);
      }
    });
    const file = await backUp(t, service);
    await assertLogsIn(t, file, await newPlace(t, kind, source.dataDir));
  });
}

test('a backup is not taken if the key of an agent is rotated both before its snapshot and after it', async (t) => {
  const service = await startAt(t, await newPlace(t, 'sqlite'));
  await service.agent('worker');
  let readings = 0;
  aroundReading(
    t,
    async () => {
      readings += 1;
      if (readings === 2) await rotateAgent(service);
    },
    async () => {
      if (readings === 1) await rotateAgent(service);
    },
  );
  const { status, body } = await service.admin.post('/api/v1/backup');
  assert.deepEqual([status, body.error.code], [503, 'UNAVAILABLE']);
  assert.match(body.error.message, /an agent's key was replaced again while the snapshot was taken\./);
  assert.match((await service.admin.post('/api/v1/backup')).text, /\n\{"end":/);
});

test('a backup has one key for each agent, and none that is staged or former', async (t) => {
  const source = await newPlace(t, 'sqlite');
  const service = await startAt(t, source);
  for (const name of ['worker', 'other'])
    assert.equal((await service.admin.post('/api/v1/agents', { name })).status, 201);
  const agents = join(source.dataDir, 'agents');
  const id = readFileSync(join(agents, 'worker', 'agent_id'), 'utf8').trim();
  // A rotation that the database has not committed, and a copy of the current key.
  mkdirSync(join(agents, '.pending', id), { mode: 0o700 });
  writeFileSync(join(agents, '.pending', id, 'agent_id'), `${id}\n`);
  writeFileSync(join(agents, '.pending', id, 'private_key.pem'), (await generateAgentKeys()).privateKeyPem);
  cpSync(join(agents, 'worker'), join(agents, 'copy'), { recursive: true });
  // The key that the agent made itself is not here.
  const { publicKey } = await generateAgentKeys();
  await service.admin.post('/api/v1/agents/other/rotate', { public_key: publicKey });
  const file = await backUp(t, service);
  assert.equal((await verifyBackup(file, OPENER)).totals.agent_keys, 1);
  await assertLogsIn(t, file, await newPlace(t, 'sqlite', source.dataDir));
});
