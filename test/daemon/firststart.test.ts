// The first start, killed at each of its steps: the directory that is left starts. After it, a lost database is never replaced by an
// empty one. SOURCE: decisions, "The product"; security, P10.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../kit/folder.ts';
import { runOutside } from '../kit/outside.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { copyDatabaseOf, STORE } from '../kit/stores.ts';
import { photograph } from './vaults.ts';

const MARKER = 'vault.created';

/** A first start and its stop; resolves to copies of the data directory, each as a kill at one of the steps leaves it. */
async function copyEveryStep(t: TestContext, dataDir: string): Promise<string[]> {
  const into = temporaryFolder(t);
  const preload = ['--import', join(import.meta.dirname, 'everystep.ts')];
  const service = await startProcess(t, dataDir, [], {
    environment: { STEPS_OF: dataDir, STEPS_INTO: into },
    nodeFlags: preload,
  });
  await service.end('SIGTERM');
  const seen = new Set<string>();
  return readdirSync(into)
    .sort()
    .map((name) => join(into, name))
    .filter((copy) => {
      const shot = JSON.stringify(photograph(copy));
      return seen.size < seen.add(shot).size;
    });
}

async function assertStarts(t: TestContext, dataDir: string): Promise<void> {
  const service = await startTestService(t, [], dataDir);
  assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  assert.equal(existsSync(join(dataDir, MARKER)), true);
  await service.stop();
}

test('a kill at any step of the first start, or of its stop, leaves a directory that starts', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const copies = await copyEveryStep(t, dataDir);
  assert.ok(copies.length >= 15, `${copies.length} copies`);
  const hasMarker = (copy: string) => existsSync(join(copy, MARKER));
  assert.ok(copies.some(hasMarker) && !copies.every(hasMarker));
  for (const copy of copies) {
    // A shared database has its vault once the marker exists; before, it may have it or not.
    if (hasMarker(copy) || STORE === 'sqlite') await copyDatabaseOf(dataDir, copy);
    await assertStarts(t, copy);
  }
});

test('a vault with a given token and without agents is not replaced by an empty one when its database is lost', async (t) => {
  const folder = temporaryFolder(t);
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'a'.repeat(40), { mode: 0o600 });
  const [dataDir, flags] = [join(folder, 'data'), ['--admin-token-file', tokenFile]];
  await (await startTestService(t, flags, dataDir)).stop();
  if (STORE === 'sqlite') rmSync(join(dataDir, 'leasehold.db'));
  else await runOutside(dataDir, 'DROP SCHEMA leasehold CASCADE');
  await assert.rejects(
    startTestService(t, flags, dataDir),
    /the database was lost|holds no vault, but .* has served one/,
  );
});
