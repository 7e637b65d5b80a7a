// The drill of docs/backup.md: a service under load, a backup, the loss of everything but the root key, a restore.

import assert from 'node:assert/strict';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runCommand, startProcess } from '../kit/process.ts';
import { databaseUrlOf } from '../kit/stores.ts';

const LOOPS = 4;

interface Stored {
  readonly path: string;
  readonly value: string;
  readonly at: number;
}

/** Stores and retrieves without pause until `stop`. Resolves to what was acknowledged. */
function startLoad(address: string, adminToken: string) {
  let isStopped = false;
  const acknowledged: Stored[] = [];
  const loop = async (number: number): Promise<void> => {
    const admin = createClient(address, adminToken);
    for (let n = 0; !isStopped; n++) {
      const [path, value] = [`load/${number}/${n}`, `value ${number} ${n}`];
      const { status } = await admin.post('/api/v1/credentials', { path, value });
      assert.equal(status, 201);
      acknowledged.push({ path, value, at: performance.now() });
      assert.equal((await admin.get(`/api/v1/credentials/${path}`)).body.data.value, value);
    }
  };
  const loops = Array.from({ length: LOOPS }, (_, number) => loop(number));
  return {
    acknowledged,
    async stop() {
      isStopped = true;
      await Promise.all(loops);
    },
  };
}

test('after the loss of the vault a restore brings back every credential that was stored before the backup', async (t) => {
  const safe = temporaryDirectory(t);
  const [rootKey, identityFile, file] = ['root.key', 'identity', 'vault.age'].map((name) => join(safe, name));
  assert.ok(rootKey && identityFile && file);
  const identity = await generateX25519Identity();
  writeFileSync(identityFile, `${identity}\n`, { mode: 0o600 });
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startProcess(t, dataDir);
  copyFileSync(join(dataDir, 'root.key'), rootKey);
  const admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'worker' })).status, 201);

  const load = startLoad(service.address, service.adminToken);
  while (load.acknowledged.length < 50) await admin.get('/api/v1/health');
  const begunAt = performance.now();
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const backup = await home.spawned(['backup', file, '--recipient', await identityToRecipient(identity)]);
  assert.equal(backup.code, 0, backup.stderr);
  const { verifier_key: verifierKey } = (await admin.get('/api/v1/audit/checkpoint')).body.data;
  const atEnd = load.acknowledged.length;
  while (load.acknowledged.length < atEnd + 20) await admin.get('/api/v1/health');
  await load.stop();
  await service.end('SIGKILL');
  rmSync(dataDir, { recursive: true });

  const restoredDir = join(temporaryDirectory(t), 'data');
  const url = await databaseUrlOf(restoredDir);
  writeFileSync(join(safe, 'url'), url ?? '', { mode: 0o600 });
  const flags = ['--root-key-file', rootKey, '--identity-file', identityFile, '--verifier-key', verifierKey];
  const database = url === null ? [] : ['--database-file', join(safe, 'url')];
  const { code, output } = await runCommand(['restore', file, '--data-dir', restoredDir, ...flags, ...database]);
  assert.equal(code, 0, output);

  const restored = await startProcess(t, restoredDir, ['--root-key-file', rootKey]);
  const after = createClient(restored.address, restored.adminToken);
  const before = load.acknowledged.filter(({ at }) => at < begunAt);
  assert.ok(before.length >= 50);
  for (const { path, value } of before) {
    assert.equal((await after.get(`/api/v1/credentials/${path}`)).body.data.value, value, path);
  }
  // The backup contains a prefix, without gaps, of the values that each loop stored in the meantime.
  const { data } = (await after.get('/api/v1/credentials')).body;
  const paths = new Set(data.map(({ path }: Stored) => path));
  for (const path of paths) {
    const [, number, n] = String(path).split('/').map(Number);
    if (n !== undefined && n > 0) assert.equal(paths.has(`load/${number}/${n - 1}`), true, String(path));
  }
  assert.equal((await after.get('/api/v1/audit/verify')).body.data.valid, true);
  const events = (await after.get('/api/v1/audit?limit=1000')).body.data.map(
    ({ event_type }: { event_type: string }) => event_type,
  );
  assert.equal(events.includes('service.restore'), true);
  const token = await logIn(restored.address, 'worker', readAgentKey(restoredDir, 'worker'));
  assert.equal((await createClient(restored.address, token).get('/auth/session')).status, 200);
});
