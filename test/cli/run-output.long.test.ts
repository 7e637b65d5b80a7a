// The output of `leasehold run`: slow, closed and full readers, processes that write after the program, and how the
// command ends then.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { openScene } from './run-fixture.ts';

const scene = await openScene({ after });
const A = ['--env', 'A=prod/a'] as const;
const inHome = (name: string): string => join(scene.home.path, name);

/** Starts the command with a script as its program. */
function start(script: string, stdio: ('ignore' | 'pipe')[], shell = 'sh', ...flags: readonly string[]): ChildProcess {
  const [program = '', ...words] = scene.run(...flags, ...A, '--', shell, '-c', script);
  return spawn(program, words, { env: scene.environment, stdio });
}
const textOf = async (stream: ChildProcess['stdout']): Promise<string> => ((await stream?.toArray()) ?? []).join('');
const statusOf = (child: ChildProcess) => new Promise((resolve) => child.once('exit', (...status) => resolve(status)));

test('a signal that ended the program ends the command too', async () => {
  for (const signal of ['SIGKILL', 'SIGINT'] as const)
    assert.deepEqual(await statusOf(start(`kill -${signal.slice(3)} $$`, ['ignore'])), [null, signal]);
  assert.equal(await scene.countActive(), 0);
});

test('a reader that closes its end ends the program as it would without the command', async () => {
  const child = start('yes; kill -l $? >&2', ['ignore', 'pipe', 'pipe']);
  child.stdout?.once('data', () => child.stdout?.destroy());
  assert.equal(await textOf(child.stderr), 'PIPE\n');
  const other = start('yes >&2; kill -l $?', ['ignore', 'pipe', 'pipe'], 'bash');
  other.stderr?.destroy();
  assert.equal(await textOf(other.stdout), 'PIPE\n');
});

test('output is neither lost nor truncated for a slow reader, and a background process is not waited for', async () => {
  const lines = Array.from({ length: 200_000 }, (_, at) => `${at + 1}\n`).join('');
  const child = start('sleep 600 & echo $! >"$HOME/left"; seq 200000', ['ignore', 'pipe', 'ignore']);
  let stdout = '';
  for await (const chunk of child.stdout ?? []) {
    stdout += chunk;
    if (stdout.length < 200_000) await sleep(20); // the slowness of the reader
  }
  assert.equal(stdout === lines, true);
  process.kill(Number(readFileSync(inHome('left'), 'utf8'))); // throws where it was waited for
});

test('if both outputs lead to the same file their order is kept, and both can be opened by name', async () => {
  const script = 'for i in {1..200}; do echo o$i; echo e$i >&2; done; echo $A > /dev/stdout';
  const words = scene.run(...A, '--', 'bash', '-c', script);
  const line = `${words.map((word) => `'${word}'`).join(' ')} 2>&1 | cat`;
  const child = spawn('bash', ['-c', line], { env: scene.environment, stdio: ['ignore', 'pipe', 'ignore'] });
  const expected = Array.from({ length: 200 }, (_, at) => `o${at + 1}\ne${at + 1}\n`).join('');
  assert.equal(await textOf(child.stdout), `${expected}[secret]\n`);
});

/** A program whose background process writes longer than any test, and prints its process id first. */
function leave(t: TestContext, script: string) {
  const child = start(script, ['ignore', 'pipe', 'ignore']);
  let output = '';
  child.stdout?.on('data', (chunk) => (output += chunk));
  t.after(() => {
    const pid = Number(/pid (\d+)/.exec(output)?.[1]);
    child.kill('SIGKILL');
    try {
      if (pid > 1) process.kill(pid);
    } catch {
      // The process has received the closed pipe.
    }
  });
  const says = (text: string): Promise<void> => until(() => output.includes(text));
  return { child, status: statusOf(child), says };
}

test('a background process that keeps writing is not waited for', async (t) => {
  const { status } = leave(t, '(while sleep 0.3; do echo tick; done) & echo pid $!; exit 7');
  assert.deepEqual(await status, [7, null]);
});

test('with a blocked reader leases are revoked, and a signal ends the wait for a process that floods, with the program’s exit code', async (t) => {
  const flood = 'yes & echo pid $!; while [ ! -e "$HOME/paused" ]; do sleep 0.1; done; exit 7';
  const { child, status, says } = leave(t, flood);
  await says('pid');
  child.stdout?.pause();
  writeFileSync(inHome('paused'), '');
  // Leases are revoked when the program has ended: a signal before that would be forwarded to it.
  await until(async () => (await scene.countActive()) === 0);
  assert.equal(child.exitCode, null, 'leases wait for the output');
  child.kill('SIGINT');
  assert.deepEqual(await status, [7, null]);
});

test('a signal that ends the reading is not forwarded to a background process', async (t) => {
  const directory = temporaryDirectory(t);
  // WHY it waits for its parent: a signal before the program's end is forwarded.
  const script = `(trap '' PIPE; trap 'echo > signalled' TERM; while kill -0 $$; do sleep 0.1; done
    while echo tick; do sleep 0.1; done; echo > closed) 2> errors & exit 7`;
  const { child, status, says } = leave(t, `cd '${directory}'; ${script}`);
  await says('tick');
  child.kill('SIGTERM');
  assert.deepEqual(await status, [7, null]);
  await until(() => existsSync(join(directory, 'closed')));
  assert.ok(!existsSync(join(directory, 'signalled')));
});

const FULL = 'leasehold: standard output cannot be written (ENOSPC)\n';

/** Runs a script with redirected streams; the text is the output that was not redirected. */
async function redirect(script: string, redirection: string, ...flags: readonly string[]) {
  const words = scene.run(...A, ...flags, '--', 'sh', '-c', script);
  const child = spawn('sh', ['-c', `exec "$@" ${redirection}`, '-', ...words], { env: scene.environment });
  const status = statusOf(child);
  const texts = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  return { status: await status, text: texts.join('') };
}

test('with a full device as output the program is waited for, and its leases are revoked', async () => {
  const script = `trap '' PIPE; echo "$A" > "$HOME/trace"; echo hi; sleep 0.3; test -f "$A" && echo held >> "$HOME/trace"; exit 7`;
  assert.deepEqual(await redirect(script, '> /dev/full', '--files'), { status: [7, null], text: FULL });
  const [path = '', held] = readFileSync(inHome('trace'), 'utf8').split('\n');
  assert.deepEqual([held, existsSync(path), await scene.countActive()], ['held', false, 0]);
});

test('a full output ends a program that keeps writing; a full standard error is discarded', async () => {
  assert.deepEqual(await redirect('echo hi', '> /dev/full 2>&1'), { status: [2, null], text: '' });
  assert.deepEqual(await redirect(':', '> /dev/full'), { status: [0, null], text: '' });
  assert.deepEqual(await redirect('exec yes', '> /dev/full'), { status: [141, null], text: FULL });
  const script = 'seq 100000 >&2; echo $?; sleep 0.3; seq 100000 >&2; echo $?';
  assert.deepEqual(await redirect(script, '2> /dev/full'), { status: [0, null], text: '0\n0\n' });
});

test('every other command exits with 2 immediately', async () => {
  const child = spawn('sh', ['-c', 'exec "$@" > /dev/full', '-', ...scene.run('--help')], { env: scene.environment });
  const status = statusOf(child);
  assert.equal(await textOf(child.stderr), 'leasehold: standard output cannot be written (ENOSPC).\n');
  assert.deepEqual(await status, [2, null]);
});
