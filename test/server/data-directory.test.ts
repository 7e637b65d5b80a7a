// A start rejects links and files of other kinds in the data directory, and directories with other files.
// SOURCE: docs/decisions.md, "The process". `program.test.ts` tests the modes.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { assertNoStart, copyVault, photograph } from './vaults.ts';

const LINKED = [
  'leasehold.db',
  'leasehold.db-wal',
  'leasehold.db-shm',
  'root.key',
  'daemon.token',
  'lock',
  'agents',
  'agents/.pending',
  'agents/kept',
  'agents/kept/private_key.pem',
  'agents/kept/agent_id',
];

for (const name of LINKED) {
  test(`${name} may not be a link: the start fails with one line, and the target of the link is unchanged`, async (t) => {
    const dataDir = await copyVault(t);
    const [path, away] = [join(dataDir, name), join(temporaryDirectory(t), 'away')];
    if (existsSync(path)) renameSync(path, away);
    else writeFileSync(away, '');
    symlinkSync(away, path);
    const before = photograph(join(away, '..'));
    await assertNoStart(t, dataDir, /(?:must .*not (?:be )?a link|must be a file, and not a link)/);
    assert.deepEqual(photograph(join(away, '..')), before);
  });
}

test('the data directory may not be a link or a file', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  symlinkSync(dataDir, join(directory, 'link'));
  symlinkSync(join(directory, 'nowhere'), join(directory, 'dangling'));
  writeFileSync(join(directory, 'file'), '');
  const before = photograph(dataDir);
  for (const name of ['link', 'dangling', 'file']) {
    await assertNoStart(t, join(directory, name), /must be a directory, and not a link to one/);
  }
  assert.deepEqual(photograph(dataDir), before);
});

test('a dangling link is rejected: no token or key is written through it', async (t) => {
  for (const name of ['root.key', 'leasehold.db', 'lock', 'daemon.token']) {
    const directory = temporaryDirectory(t);
    const dataDir = join(directory, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    symlinkSync(join(directory, 'target'), join(dataDir, name));
    await assert.rejects(startTestService(t, [], dataDir), /must be a file, and not a link to one/);
    assert.equal(existsSync(join(directory, 'target')), false, name);
  }
});

test('a directory in place of a file, or a file in place of a directory, prevents the start', async (t) => {
  for (const name of ['root.key', 'leasehold.db', 'lock']) {
    const dataDir = await copyVault(t);
    rmSync(join(dataDir, name), { force: true });
    mkdirSync(join(dataDir, name), { mode: 0o700 });
    await assertNoStart(t, dataDir, /must be a file/);
  }
  const dataDir = await copyVault(t);
  rmSync(join(dataDir, 'agents'), { recursive: true });
  writeFileSync(join(dataDir, 'agents'), '', { mode: 0o600 });
  await assertNoStart(t, dataDir, /must be a directory/);
});

test('a directory with other files is rejected and left unchanged; one of an empty volume is not', async (t) => {
  const [directory, volume] = [temporaryDirectory(t), temporaryDirectory(t)];
  chmodSync(directory, 0o1777);
  writeFileSync(join(directory, 'somebody’s.txt'), 'x');
  await assertNoStart(t, directory, /contains other files and no vault\. Nothing was changed\./);
  assert.equal(statSync(directory).mode & 0o7777, 0o1777);
  writeFileSync(join(volume, 'lost+found'), '');
  await startTestService(t, [], volume);
  assert.ok(existsSync(join(volume, 'root.key')));
});
