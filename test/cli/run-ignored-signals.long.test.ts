// Signals that were ignored when `leasehold` was started, as by nohup, stay ignored by the command and its program.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { COMMAND } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { findPort } from '../kit/port.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { openScene, type Scene } from './run-fixture.ts';

/** The launcher of the command, next to a module that skips the installation. */
function openLauncher(scope: Scope, { environment }: Scene) {
  const launcher = join(temporaryDirectory(scope), 'leasehold');
  copyFileSync(join(import.meta.dirname, '../../scripts/leasehold'), launcher);
  writeFileSync(`${launcher}.mjs`, `await import(${JSON.stringify(COMMAND.at(-1))});\n`);
  return {
    launcher,
    environment: {
      ...environment,
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      'A.B': 'kept',
    },
  };
}

/** The arguments of a shell that starts the command with these signals ignored, by their names for `trap`. */
const ignoring = (signals: string, launcher: string, words: readonly string[]): string[] => [
  '-c',
  signals === '' ? 'exec "$@"' : `trap '' ${signals}; exec "$@"`,
  '-',
  launcher,
  ...words,
];

const scene = await openScene({ after });
const { environment, launcher } = openLauncher({ after }, scene);
const RUN = ['run', '--env', 'A=prod/a'];
const MASK = ['--', 'sh', '-c', 'grep SigIgn /proc/self/status; echo "<$A> $0"'];

/** Names as `trap` takes them, and the mask that proc_pid_status(5) shows then. */
const MASKS: readonly [signals: string, mask: string][] = [
  ['', '0000000000000000'],
  ['PIPE QUIT TSTP', '0000000000081004'],
];
for (const [signals, mask] of MASKS) {
  test(`the program ignores exactly the inherited signals: ${signals || 'nothing'}`, async (t) => {
    for (const flags of [[], ['--no-masking']]) {
      const child = spawn('sh', ignoring(signals, launcher, [...RUN, ...flags, ...MASK]), { env: environment });
      const output = (await child.stdout.toArray()).join('');
      assert.match(output, new RegExp(`^SigIgn:\\t${mask}\n<.+> sh\n$`), String(flags));
    }
    const words = ['sh', ...ignoring(signals, launcher, [...RUN, ...MASK])];
    const screen = openPseudoTerminal(t, words, { cwd: scene.home.path, environment });
    assert.deepEqual(await screen.ended, { exitCode: 0, signal: undefined });
    assert.equal(screen.screen(), `SigIgn:\t${mask}\r\n<[secret]> sh\r\n`);
  });
}

/** A terminal that is closed as soon as the program is ready. */
const CLOSING = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen = b''
while b'ready' not in seen: seen += os.read(terminal, 1000)
os.close(terminal)
open(sys.argv[-1], 'w').close()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`;

test('a program that ignores the hangup runs to its end after its terminal is closed, however much it writes', async (t) => {
  const closed = join(scene.home.path, 'closed');
  const script = 'echo ready; while [ ! -e "$0" ]; do sleep 0.05; done; seq 100000; exit 3';
  const words = ignoring('HUP', launcher, [...RUN, '--', 'sh', '-c', script, closed]);
  const child = spawn('python3', ['-c', CLOSING, 'sh', ...words], {
    env: environment,
    stdio: 'ignore',
    detached: true,
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  t.after(() => child.kill('SIGKILL'));
  assert.equal(await ended, 3);
  assert.equal(await scene.countActive(), 0);
});

/** Starts a separate process group, so that a signal reaches all of its processes, like a signal from a terminal. */
function start(signals: string, words: readonly string[]) {
  const child = spawn('sh', ignoring(signals, launcher, words), { env: environment, detached: true });
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  return { child, ended };
}

function signalAll({ pid = 0 }: ChildProcess, signal: NodeJS.Signals): void {
  assert.ok(pid > 1);
  process.kill(-pid, signal);
}

test('an ignored signal ends neither the command nor the program, and leases are revoked at the end', async () => {
  const { child, ended } = start('HUP TERM', [...RUN, '--', 'sh', '-c', 'echo ready; read x; exit 7']);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
    child.kill(signal);
    signalAll(child, signal);
  }
  assert.equal(await scene.countActive(), 1);
  child.stdin.end('\n');
  assert.equal(await ended, 7);
  assert.equal(await scene.countActive(), 0);
});

test('other commands keep the ignored signals too', async () => {
  const { child, ended } = start('INT', ['put', 'prod/new', '-']);
  const stderr = child.stderr.toArray();
  // A hangup is caught by what our commands do; Node itself catches an interrupt from its start.
  await until(() => /SigCgt:.*[13579bdf]$/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8')));
  child.kill('SIGINT');
  child.stdin.end('a value');
  await ended;
  assert.match((await stderr).join(''), /ACCESS_DENIED/);
});

test('without GNU env a shell sets the ignored signals', async () => {
  const folder = temporaryDirectory({ after });
  const file = join(folder, 'a=b');
  writeFileSync(file, '#!/bin/sh\ngrep SigIgn /proc/self/status; echo "$@"\n', { mode: 0o755 });
  const child = spawn('sh', ignoring('HUP INT', launcher, [...RUN, '--', file, 'a b', '$c']), { env: environment });
  assert.equal((await child.stdout.toArray()).join(''), 'SigIgn:\t0000000000000003\na b $c\n');
});

test('a server that was started by nohup outlives its terminal', { timeout: 240_000 }, async (t) => {
  const folder = temporaryDirectory(t);
  const port = await findPort();
  const words = ['server', '--listen', `127.0.0.1:${port}`, '--data-dir', join(folder, 'vault')];
  // A separate process group, to which a terminal that is closed sends SIGHUP.
  const server = spawn('sh', ignoring('HUP', launcher, words), { env: environment, detached: true, stdio: 'ignore' });
  const group = -(server.pid ?? assert.fail());
  t.after(() => server.exitCode === null && process.kill(group, 'SIGKILL'));
  const isWell = () =>
    fetch(`http://127.0.0.1:${port}/api/v1/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isWell);
  process.kill(group, 'SIGHUP');
  assert.equal(await isWell(), true);
  const ended = once(server, 'exit');
  process.kill(group, 'SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
