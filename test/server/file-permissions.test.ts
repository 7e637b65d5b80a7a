// A start makes the data directory private, and rejects links in it. SOURCE: docs/decisions.md, "The process";
// CVE-2021-38553, world-readable files.

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

/** The files of the store in a used data directory. */
const OF_STORE = { sqlite: ['leasehold.db', 'leasehold.db-wal', 'leasehold.db-shm'], postgres: [] }[STORE];

/** The directory and every path below it, with the permissions of other users. */
function loosePaths(dir: string): string[] {
  const found = globSync('**/{*,.*}', { cwd: dir }).map((name) => join(dir, name));
  return [dir, ...found].filter((path) => {
    const stat = statSync(path);
    return (stat.mode & 0o777) !== (stat.isDirectory() ? 0o700 : 0o600);
  });
}

/** The umask applies to this process and its children, so it is restored. */
async function withoutUmask<T>(work: () => Promise<T>): Promise<T> {
  const before = process.umask(0);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

test('a new data directory, its write-ahead log and its keys are private even with a umask of 0', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'new/and/deep');
  const service = await withoutUmask(() => startProcess(t, dataDir));
  const admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'ci' })).status, 201);
  const names = Object.keys(photograph(dataDir)).map((name) => basename(name));
  for (const name of [...OF_STORE, 'root.key', 'daemon.token', 'lock', 'rollback.marker', 'private_key.pem']) {
    assert.equal(names.includes(name), true, name);
  }
  assert.deepEqual(loosePaths(dataDir), []);
  for (const name of ['new', 'new/and'])
    assert.equal(statSync(join(dataDir, '../..', '..', name)).mode & 0o077, 0, name);
});

test('a start makes a world-readable data directory and its files private', async (t) => {
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

test('a Unix socket in the data directory is closed to other users', async (t) => {
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
  test(`${name} may not be a link: the start fails with one line, and the target of the link is unchanged`, async (t) => {
    const dataDir = await copyVault(t);
    const [path, away] = [join(dataDir, name), join(temporaryDirectory(t), 'away')];
    if (existsSync(path)) renameSync(path, away);
    else writeFileSync(away, '');
    symlinkSync(away, path);
    const before = photograph(join(away, '..'));
    // A start checks it last, when the server already listens.
    if (name === 'daemon.token') await assertProgramRefuses(dataDir, /not a link/);
    else await assertNoStart(t, dataDir, /must .*not (?:be )?a link/);
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
    const reason = /must be a file, and not a link to one/;
    if (name === 'daemon.token') {
      const { code, output } = await runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0']);
      assert.match(output, reason);
      assert.equal(code, 1);
    } else {
      await assert.rejects(startTestService(t, [], dataDir), reason);
    }
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
