// File systems on which modes have no effect. SOURCE: docs/decisions.md, "Modes are read back". Each program is a
// process in which files below the directory become open to everyone, whatever mode it asks for.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, globSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { launchProcess, startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';

const PRELOAD = ['--import', join(ROOT, 'test/faults/modeless-files.ts')];
const REASON = (path: string): RegExp =>
  new RegExp(
    `Other users may read ${path}: its mode is 0\\d\\d\\d, and its file system does not change modes, .* LEASEHOLD_ACCEPT_OPEN_MODES=1`,
  );
const ACCEPTED = { LEASEHOLD_ACCEPT_OPEN_MODES: '1' };

const service = await startTestService({ after });
await service.admin.post('/api/v1/credentials', { path: 'a/b', value: 'correct horse' });

/** Starts the server on a file system without modes. */
const launch = (
  scope: Scope,
  dataDir: string,
  flags: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
) =>
  launchProcess(scope, dataDir, flags, {
    nodeFlags: PRELOAD,
    environment: { MODELESS_DIR: dataDir, ...environment },
  });

test('a new data directory is rejected, and nothing is left of it', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const { ended, output, ready } = await launch(t, dataDir);
  await assert.rejects(ready);
  assert.equal(await ended, 1);
  assert.match(output(), REASON(dataDir));
  assert.equal(existsSync(dataDir), false);
});

test('a start makes everything private, whatever the umask, and stops after the reader of its output has closed', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  await (await startTestService(t, [], dataDir)).stop();
  const paths = () => [dataDir, ...globSync('**/{*,.*}', { cwd: dataDir }).map((name) => join(dataDir, name))];
  for (const path of paths()) chmodSync(path, 0o777);
  const umask = process.umask(0);
  const { child, end } = await startProcess(t, dataDir).finally(() => process.umask(umask));
  assert.deepEqual(
    paths().filter((path) => (statSync(path).mode & 0o077) !== 0),
    [],
  );
  child.stdout?.destroy();
  child.stderr?.destroy();
  assert.equal(await end('SIGHUP'), 0);
});

test('an existing vault is rejected too, and no token is written', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startTestService(t, [], dataDir);
  await service.stop();
  chmodSync(dataDir, 0o777);
  const { ended, output, ready } = await launch(t, dataDir);
  await assert.rejects(ready);
  assert.equal(await ended, 1);
  assert.match(output(), REASON(dataDir));
  assert.equal(existsSync(join(dataDir, 'daemon.token')), false);
});

/** The files of a vault that each start, and each creation, must find private. */
for (const name of ['leasehold.db', 'root.key', 'agents/ci', 'agents/ci/private_key.pem']) {
  test(`an open ${name} in a private directory prevents the start`, async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startTestService(t, [], dataDir);
    await service.admin.post('/api/v1/agents', { name: 'ci' });
    await service.stop();
    const path = join(dataDir, name);
    if (!existsSync(path)) return;
    chmodSync(path, 0o777);
    const environment = { MODELESS_DIR: path };
    const { ended, output, ready } = await launchProcess(t, dataDir, [], { nodeFlags: PRELOAD, environment });
    await assert.rejects(ready);
    assert.equal(await ended, 1);
    assert.match(output(), REASON(path));
  });
}

test('with --accept-open-modes or its variable it starts, and the output says so', async (t) => {
  for (const [flags, environment] of [
    [['--accept-open-modes'], {}],
    [[], ACCEPTED],
  ] as const) {
    const dataDir = join(temporaryDirectory(t), 'data');
    const { ready, output } = await launch(t, dataDir, flags, environment);
    await ready;
    assert.match(output(), /^WARNING {2}Other users may read the keys in .*, as --accept-open-modes accepts\.$/m);
    const open = globSync('**/*', { cwd: dataDir }).filter(
      (name) => (statSync(join(dataDir, name)).mode & 0o077) !== 0,
    );
    for (const name of ['root.key', 'daemon.token']) assert.ok(open.includes(name), name);
  }
});

test('on other file systems the flag changes nothing, and the output does not mention it', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const { ready, output } = await launchProcess(t, dataDir, ['--accept-open-modes']);
  await ready;
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
  assert.doesNotMatch(output(), /WARNING/);
});

/** Runs the CLI with a home on a file system without modes. */
async function cli(scope: Scope, words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const home = join(temporaryDirectory(scope), 'home');
  mkdirSync(home, { mode: 0o777 });
  chmodSync(home, 0o777);
  writeFileSync(join(home, 'template'), '{{leasehold://a/b}}');
  const [program, ...first] = COMMAND;
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    MODELESS_DIR: home,
    ...COMPILED,
    LEASEHOLD_ADDR: service.address,
    LEASEHOLD_TOKEN: service.adminToken,
    ...environment,
  };
  const before = globSync('**/{*,.*}', { cwd: home }).length;
  return new Promise<{ code: number; stderr: string; left: number }>((resolve) => {
    execFile(program, [...PRELOAD, ...first, ...words], { cwd: home, env }, (error, _stdout, stderr) =>
      resolve({
        code: error === null ? 0 : Number(error.code),
        stderr,
        left:
          globSync('**/{*,.*}', { cwd: home }).filter((name) => statSync(join(home, name)).isFile()).length - before,
      }),
    );
  });
}

const WRITERS: readonly (readonly string[])[] = [
  ['agent', 'add', 'ci', '--new-key', 'ci.pem'],
  ['backup', 'vault.age', '--recipient', 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
  ['audit', 'export', '--out', 'log.ndjson'],
  ['inject', 'template', '--out', 'filled'],
];

for (const words of WRITERS) {
  test(`leasehold ${words.slice(0, 2).join(' ')} leaves no file that other users may read`, async (t) => {
    const { code, stderr, left } = await cli(t, words);
    assert.match(stderr, /Other users may read .*: its mode is 0777, .* set\s+LEASEHOLD_ACCEPT_OPEN_MODES=1/);
    assert.deepEqual([code === 0, left], [false, 0]);
    assert.equal((await cli(t, words, ACCEPTED)).code, 0);
  });
}
