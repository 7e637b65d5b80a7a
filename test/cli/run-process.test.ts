// `leasehold run` as a process of the system: a terminal, its signals, signals that are ignored, and lost output. The
// other cases of each are in the long tests.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, test } from 'node:test';
import { openScene, openTerminal, VALUES } from './run-fixture.ts';
import { ignoring, openLauncher } from './run-launcher.ts';

const scene = await openScene({ after });
const A = ['--env', 'A=prod/a'] as const;

test('a program has a masked terminal of the window’s size, and Ctrl-C reaches it once', async (t) => {
  const script = `trap 'n=$((n+1)); echo got $n' INT; trap 'stty size' WINCH
    test -t 0 && test -t 1 && test -t 2 && stty size; echo "$A"
    while :; do read x && { [ "$x" = end ] && exit 9; echo "<$x>"; }; done`;
  const screen = openTerminal(t, scene, scene.run(...A, '--', 'sh', '-c', script));
  await screen.sees('24 80\r\n[secret]\r\n');
  screen.resize(100, 30);
  await screen.sees('30 100');
  screen.type(`${VALUES['prod/a']}\r`);
  await screen.sees('[secret]\r\n<[secret]>\r\n');
  screen.type('\u0003');
  await screen.sees('got 1');
  screen.type('end\r');
  assert.deepEqual(await screen.ended, { exitCode: 9, signal: undefined });
  assert.doesNotMatch(screen.screen(), /got 2|hunter2/);
});

test('the program ignores exactly the signals that were ignored when the command started', async () => {
  const { environment, launcher } = openLauncher({ after }, scene);
  const script = 'grep SigIgn /proc/self/status; echo "<$A>"';
  const words = ignoring('PIPE QUIT TSTP', launcher, ['run', ...A, '--', 'sh', '-c', script]);
  const child = spawn('sh', words, { env: environment });
  // As proc_pid_status(5) shows them.
  assert.equal((await child.stdout.toArray()).join(''), 'SigIgn:\t0000000000081004\n<[secret]>\n');
});

test('lost output turns exit code 0 into 2, and leases are revoked', async () => {
  const words = scene.run(...A, '--', 'sh', '-c', 'echo hi');
  const child = spawn('sh', ['-c', 'exec "$@" > /dev/full', '-', ...words], { env: scene.environment });
  const code = new Promise((resolve) => child.once('exit', resolve));
  const stderr = (await child.stderr.toArray()).join('');
  assert.deepEqual([await code, stderr], [2, 'leasehold: standard output cannot be written (ENOSPC)\n']);
  assert.equal(await scene.countActive(), 0);
});
