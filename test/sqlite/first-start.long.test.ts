// The first start, killed at each of its steps: the remaining directory can be started. SOURCE:
// docs/decisions.md, "The process"; SECURITY.md, P10.

import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { photograph } from '../server/vaults.ts';

const MARKER = 'vault.created';

/** A first start and its stop; resolves to copies of the data directory, as a kill at each step leaves it. */
async function copyEveryStep(t: TestContext, dataDir: string): Promise<string[]> {
  const into = temporaryDirectory(t);
  const preload = ['--import', join(import.meta.dirname, 'every-step.ts')];
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

test('a kill at any step of the first start or its stop leaves a directory that can be started', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const copies = await copyEveryStep(t, dataDir);
  assert.ok(copies.length >= 15, `${copies.length} copies`);
  const hasMarker = (copy: string) => existsSync(join(copy, MARKER));
  assert.ok(copies.some(hasMarker) && !copies.every(hasMarker));
  for (const copy of copies) await assertStarts(t, copy);
});
