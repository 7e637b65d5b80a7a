// Files of the data directory that are removed under a running service: no change is acknowledged that the next start
// would not find, and no second service starts.

import assert from 'node:assert/strict';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runProgram, startProcess } from '../kit/process.ts';

async function runningVault(t: TestContext) {
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startProcess(t, dataDir);
  const ended = new Promise<number | null>((resolve) => service.child.on('close', resolve));
  const admin = createClient(service.address, service.adminToken);
  const store = () => admin.post('/api/v1/credentials', { path: 'a/b', value: 'v' });
  assert.equal((await store()).status, 201);
  return { dataDir, service, ended, admin, store };
}

const REMOVALS: Readonly<Record<string, (dataDir: string) => void>> = {
  'the data directory is renamed': (dataDir) => renameSync(dataDir, `${dataDir}.old`),
  'the database is replaced by a copy': (dataDir) => {
    const file = join(dataDir, 'leasehold.db');
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
  },
  'the write-ahead log is removed': (dataDir) => rmSync(join(dataDir, 'leasehold.db-wal')),
  'the rollback marker is removed': (dataDir) => rmSync(join(dataDir, 'rollback.marker')),
};

for (const [what, remove] of Object.entries(REMOVALS)) {
  test(`after ${what}, the next change is 503, and the service exits with 1 and one line`, async (t) => {
    const { dataDir, service, ended, store } = await runningVault(t);
    const before = service.output().length;
    remove(dataDir);
    // The service may have noticed and ended before the request arrives.
    const status = await store().then(
      (answer) => answer.status,
      () => 'no answer',
    );
    assert.equal(status === 503 || status === 'no answer', true, String(status));
    assert.equal(await ended, 1);
    const lines = service.output().slice(before).split('\n');
    assert.equal(
      lines.filter((line) => /^leasehold: .*was removed or replaced/.test(line)).length,
      1,
      lines.join('\n'),
    );
  });
}

test('a service without callers detects it too', async (t) => {
  const { dataDir, ended } = await runningVault(t);
  rmSync(dataDir, { recursive: true });
  assert.equal(await ended, 1);
});

test('after the lock file is removed, the database still keeps a second service out, and the first one continues', async (t) => {
  const { dataDir, store } = await runningVault(t);
  for (const name of ['lock', 'lock-journal']) rmSync(join(dataDir, name), { force: true });
  const { code, output } = await runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0']);
  assert.match(output, /^leasehold: [^\n]*leasehold\.db is in use by another program[^\n]*\n$/);
  assert.equal(code, 1);
  for (let n = 0; n < 5; n++) assert.equal((await store()).status, 201);
});
