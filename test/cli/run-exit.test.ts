// `leasehold run` after the program has ended while a background process still writes: how long it waits, and in which
// order it cleans up.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { openScene } from './run-fixture.ts';

const scene = await openScene({ after });

/** Prints its process id first, and runs longer than any test. */
const TICKING = '(i=0; while [ $i -lt 20000 ]; do echo tick; sleep 0.3; i=$((i+1)); done) & echo pid $!; exit 7';

interface Left {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  /** Resolves when it has printed the text. */
  says(text: string): Promise<void>;
}

function leave(t: TestContext, script: string): Left {
  const words = scene.run('--env', 'A=prod/a', '--', 'sh', '-c', script);
  const child = spawn(words[0] ?? '', words.slice(1), { env: scene.environment, stdio: ['ignore', 'pipe', 'ignore'] });
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
  return { child, ended: new Promise((resolve) => child.once('exit', resolve)), says };
}

test('a background process that keeps writing is not waited for', async (t) => {
  const { ended } = leave(t, TICKING);
  assert.equal(await ended, 7);
});

test('with a blocked reader leases are revoked, and any signal ends the wait for a flooding process, with the program’s own exit code', async (t) => {
  const { child, ended, says } = leave(
    t,
    'yes & echo pid $!; while [ ! -e "$HOME/paused" ]; do sleep 0.1; done; exit 7',
  );
  await says('pid');
  child.stdout?.pause();
  writeFileSync(join(scene.home.path, 'paused'), '');
  // Leases are revoked when the program has ended: a signal before that would be forwarded to it.
  await until(async () => (await scene.countActive()) === 0);
  await sleep(300);
  assert.equal(child.exitCode, null, 'leases wait for the output');
  child.kill('SIGINT');
  assert.equal(await ended, 7);
});

test('a signal that ends the reading is not forwarded to a background process', async (t) => {
  const directory = temporaryDirectory(t);
  // WHY it waits for its parent: a signal before the program's end is forwarded.
  const script = `(trap '' PIPE; trap 'echo > signalled' TERM; while kill -0 $$; do sleep 0.1; done
    while echo tick; do sleep 0.1; done; echo > closed) 2> errors & exit 7`;
  const { child, ended, says } = leave(t, `cd '${directory}'; ${script}`);
  await says('tick');
  child.kill('SIGTERM');
  assert.equal(await ended, 7);
  await until(() => existsSync(join(directory, 'closed')));
  assert.ok(!existsSync(join(directory, 'signalled')));
});
