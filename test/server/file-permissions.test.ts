// The data directory is private whatever it was before, and nothing in it may be a link. SOURCE: decisions, "The product";
// security, "World-readable files (CVE-2021-38553), symlinks in the data directory".

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runProgram, startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { assertNoStart, assertProgramRefuses, copyVault, photograph } from './vaults.ts';

/** What lies in the data directory for the store alone, once it was used. */
const OF_STORE = { sqlite: ['leasehold.db', 'leasehold.db-wal', 'leasehold.db-shm'], postgres: [] }[STORE];

/** Every path below the directory, itself included, with what it lets others do. */
function loosePaths(dir: string): string[] {
  const found = globSync('**/{*,.*}', { cwd: dir }).map((name) => join(dir, name));
  return [dir, ...found].filter((path) => {
    const stat = statSync(path);
    return (stat.mode & 0o777) !== (stat.isDirectory() ? 0o700 : 0o600);
  });
}

/** The umask is the process's own, and its children's: it is put back at once. */
async function withoutUmask<T>(work: () => Promise<T>): Promise<T> {
  const before = process.umask(0);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

test('a new data directory is private although the umask hides nothing, the write-ahead log and keys in it too', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'new/and/deep');
  const service = await withoutUmask(() => startProcess(t, dataDir));
  const admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'ci' })).status, 201);
  const names = Object.keys(photograph(dataDir)).map((name) => basename(name));
  for (const name of [...OF_STORE, 'root.key', 'daemon.token', 'lock', 'log.anchor', 'private_key.pem']) {
    assert.equal(names.includes(name), true, name);
  }
  assert.deepEqual(loosePaths(dataDir), []);
  for (const name of ['new', 'new/and'])
    assert.equal(statSync(join(dataDir, '../..', '..', name)).mode & 0o077, 0, name);
});

test('a data directory that was open to everybody is made private at the start, with all that the service keeps in it', async (t) => {
  const dataDir = await copyVault(t);
  for (const name of globSync('**/{*,.*}', { cwd: dataDir })) {
    const path = join(dataDir, name);
    chmodSync(path, statSync(path).isDirectory() ? 0o777 : 0o666);
  }
  chmodSync(dataDir, 0o777);
  const service = await withoutUmask(() => startProcess(t, dataDir));
  assert.equal(await service.end('SIGTERM'), 0);
  assert.deepEqual(loosePaths(dataDir), []);
});

test('a Unix socket in the data directory lets nobody else in', async (t) => {
  const dataDir = await copyVault(t);
  const path = join(dataDir, 'socket');
  await withoutUmask(() => startProcess(t, dataDir, ['--listen', `unix:${path}`]));
  assert.equal(statSync(path).mode & 0o077, 0);
});

const LINKED = [
  ...[...new Set(['leasehold.db', ...OF_STORE]), 'root.key', 'daemon.token', 'lock'],
  ...['agents', 'agents/.pending', 'agents/kept', 'agents/kept/private_key.pem', 'agents/kept/agent_id'],
];

for (const name of LINKED) {
  test(`${name} may not be a link: refused in one line, and what it leads to stays as it was`, async (t) => {
    const dataDir = await copyVault(t);
    const [path, away] = [join(dataDir, name), join(temporaryDirectory(t), 'away')];
    if (existsSync(path)) renameSync(path, away);
    else writeFileSync(away, '');
    symlinkSync(away, path);
    const before = photograph(join(away, '..'));
    // It is the last that a start looks at, when the server listens already.
    if (name === 'daemon.token') await assertProgramRefuses(dataDir, /not a link/);
    else await assertNoStart(t, dataDir, /must .*not (?:be )?a link/);
    assert.deepEqual(photograph(join(away, '..')), before);
  });
}

test('the data directory itself may not be a link, nor a file', async (t) => {
  const [dataDir, folder] = [await copyVault(t), temporaryDirectory(t)];
  symlinkSync(dataDir, join(folder, 'link'));
  symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
  writeFileSync(join(folder, 'file'), '');
  const before = photograph(dataDir);
  for (const name of ['link', 'dangling', 'file']) {
    await assertNoStart(t, join(folder, name), /must be a directory, and not a link to one/);
  }
  assert.deepEqual(photograph(dataDir), before);
});

test('a link that leads nowhere is a link: a token or a key is never written through it', async (t) => {
  for (const name of ['root.key', 'leasehold.db', 'lock', 'daemon.token']) {
    const folder = temporaryDirectory(t);
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    symlinkSync(join(folder, 'target'), join(dataDir, name));
    const reason = /must be a file, and not a link to one/;
    if (name === 'daemon.token') {
      const { code, output } = await runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0']);
      assert.match(output, reason);
      assert.equal(code, 1);
    } else {
      await assert.rejects(startTestService(t, [], dataDir), reason);
    }
    assert.equal(existsSync(join(folder, 'target')), false, name);
  }
});

test('a directory that stands where a file should, and the other way round, is a reason not to start', async (t) => {
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
