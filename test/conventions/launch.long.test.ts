// The launcher, in a fake project with a fake npm: nothing is downloaded, and no real file is replaced.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { startNotices } from '../../scripts/install.mjs';
import { callsOf, ending, makeCheckout, spawnIn } from './checkout.ts';

const ENTRY = `
import { execFileSync } from 'node:child_process';
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => process.exit(40 + signal.length));
console.log(JSON.stringify({ flags: process.execArgv, words: process.argv.slice(2), cwd: process.cwd(), from: process.env.INIT_CWD, core: execFileSync('sh', ['-c', 'ulimit -Hc'], { encoding: 'utf8' }).trim() }));
if (process.argv[2] === 'exit') process.exit(Number(process.argv[3]));
if (process.argv[2] === 'die') process.kill(process.pid, process.argv[3]);
if (process.argv[2] === 'stay') setInterval(() => {}, 1000);
`;

const makeProject = (t: TestContext): string => makeCheckout(t, { 'entry.ts': ENTRY });
const launch = (directory: string, ...words: string[]) =>
  spawnIn(directory, 'scripts/launch.mjs', ['entry.ts', ...words]);
const lockOf = (directory: string): string => path.join(directory, '.leasehold-install.lock');

test('a first launch installs, a second does not, and standard output contains only the program’s output', async (t) => {
  const directory = makeProject(t);
  const first = await ending(launch(directory));
  assert.equal(first.err, 'Installing what is missing (once) …\n');
  const said = JSON.parse(first.out);
  const second = await ending(launch(directory));
  assert.equal(second.err, '');
  assert.deepEqual(JSON.parse(second.out), said);
  assert.equal(callsOf(directory), 1);
  assert.match(readFileSync(path.join(directory, 'calls'), 'utf8'), /^ci --include=dev .*--ignore-scripts /);
});

test('the program receives its arguments, the caller’s directory, INIT_CWD and the flags of the runtime', async (t) => {
  const directory = makeProject(t);
  const { out } = await ending(launch(directory, '--data-dir', './x y'));
  const { flags, words, cwd, from, core } = JSON.parse(out);
  assert.equal(core, '0', 'a crash leaves no core dump, and nothing can allow it');
  assert.deepEqual(words, ['--data-dir', './x y']);
  assert.deepEqual(flags, [
    '--disable-sigusr1',
    '--disable-proto=delete',
    '--min-semi-space-size=8',
    '--max-semi-space-size=8',
    '--initial-old-space-size=64',
    '--heap-growing-percent=40',
    '--no-allocation-site-pretenuring',
  ]);
  assert.equal(cwd, process.platform === 'darwin' ? cwd : tmpdir());
  assert.equal(from, 'the caller’s directory');
});

test('a changed lock file is installed again', async (t) => {
  const directory = makeProject(t);
  await ending(launch(directory));
  rmSync(path.join(directory, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(directory, 'package-lock.json'), '{"lockfileVersion":3}');
  assert.equal((await ending(launch(directory))).code, 0);
  assert.equal(callsOf(directory), 2);
});

test('concurrent launches install once, and all of them run', async (t) => {
  const directory = makeProject(t);
  const endings = await Promise.all(['a', 'b', 'c', 'd'].map((word) => ending(launch(directory, word))));
  assert.deepEqual(
    endings.map(({ code, out }) => [code, JSON.parse(out).words[0]]),
    ['a', 'b', 'c', 'd'].map((word) => [0, word]),
  );
  assert.equal(callsOf(directory), 1);
  assert.throws(() => readlinkSync(lockOf(directory)));
});

test('the lock of a process that has ended is taken over', async (t) => {
  const directory = makeProject(t);
  const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(gone, 'close');
  symlinkSync(`${gone.pid}-${gone.pid}`, lockOf(directory));
  assert.equal((await ending(launch(directory))).code, 0);
  assert.throws(() => readlinkSync(lockOf(directory)));
});

test('when npm fails its output is shown, the next launch retries, and no lock is left', async (t) => {
  const directory = makeProject(t);
  writeFileSync(path.join(directory, 'offline'), '');
  const { code, out, err } = await ending(launch(directory));
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /no such host\n"npm ci" failed \(exit code 7\)\./);
  assert.equal(existsSync(lockOf(directory)), false);
  rmSync(path.join(directory, 'offline'));
  assert.equal((await ending(launch(directory))).code, 0);
});

test('the launcher ends as its program does, by exit code or by signal', async (t) => {
  const directory = makeProject(t);
  assert.equal((await ending(launch(directory, 'exit', '0'))).code, 0);
  assert.equal((await ending(launch(directory, 'exit', '9'))).code, 9);
  assert.equal((await ending(launch(directory, 'die', 'SIGKILL'))).signal, 'SIGKILL');
  assert.equal((await ending(launch(directory, 'die', 'SIGUSR2'))).signal, 'SIGUSR2');
});

test('SIGTERM, SIGINT and SIGHUP reach the program, whose exit code is kept', async (t) => {
  const directory = makeProject(t);
  await ending(launch(directory));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const child = launch(directory, 'stay');
    const ended = ending(child);
    assert.ok(child.stdout);
    await once(child.stdout, 'data');
    child.kill(signal);
    assert.equal((await ended).code, 40 + signal.length);
  }
});

test('a signal that arrives while the program is being started reaches it too', async (t) => {
  const early = `
    import { spawn } from 'node:child_process';
    import { follow } from './scripts/child-process.mjs';
    const start = () => {
      process.kill(process.pid, 'SIGTERM');
      return spawn('sleep', ['60']);
    };
    console.log(JSON.stringify(await follow(start)));
  `;
  const directory = makeCheckout(t, { 'early.mjs': early });
  const { out } = await ending(spawnIn(directory, 'early.mjs', []));
  assert.deepEqual(JSON.parse(out), { code: null, signal: 'SIGTERM', received: 'SIGTERM' });
});

test('a long installation reports periodically that it is still running', async () => {
  const lines: string[] = [];
  const enough = Promise.withResolvers<void>();
  const stop = startNotices((line: string) => {
    if (lines.push(line) === 2) enough.resolve();
  }, 5);
  await enough.promise;
  stop();
  const told = lines.length;
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(lines.length, told);
  assert.match(lines[0] ?? '', /^Still installing, for \d+ s …\n$/);
});

test('a signal during the installation ends it, and leaves neither lock nor stamp', async (t) => {
  const directory = makeProject(t);
  writeFileSync(path.join(directory, 'endless'), '');
  const child = launch(directory);
  assert.ok(child.stderr);
  const ended = ending(child);
  await once(child.stderr, 'data');
  child.kill('SIGTERM');
  assert.equal((await ended).signal, 'SIGTERM');
  assert.throws(() => readlinkSync(lockOf(directory)));
  assert.equal(existsSync(path.join(directory, 'node_modules/.leasehold-install')), false);
});
