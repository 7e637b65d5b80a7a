// `leasehold run` when the program has ended and somebody whom it left behind still writes: for how long, and what has happened by then.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openScene } from './run-fixture.ts';

const scene = await openScene({ after });

/** It says its own number first, and goes on for a minute at most. */
const TICKING = '(i=0; while [ $i -lt 200 ]; do echo tick; sleep 0.3; i=$((i+1)); done) & echo pid $!; exit 7';

interface Left {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  output(): string;
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
      // It has met the closed pipe.
    }
  });
  return { child, ended: new Promise((resolve) => child.once('exit', resolve)), output: () => output };
}

async function until(isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50))
    if (await isSo()) return true;
  return false;
}

test('whoever goes on writing is not waited for longer than five seconds, and leases are given back before', async (t) => {
  const { ended, output } = leave(t, TICKING);
  assert.equal(await until(() => output().includes('pid'), 5000), true);
  const startedAt = performance.now();
  assert.equal(await until(async () => (await scene.countActive()) === 0, 3000), true, 'leases wait for the output');
  const code = await Promise.race([ended, sleep(12_000, 'never', { ref: false })]);
  assert.equal(code, 7);
  assert.equal(performance.now() - startedAt > 4000, true, 'its output was cut short');
});

test('whoever floods a reader that stands still is left by any signal, with the program’s own exit code', async (t) => {
  const { child, ended, output } = leave(t, 'yes & echo pid $!; sleep 0.3; exit 7');
  assert.equal(await until(() => output().includes('pid'), 5000), true);
  child.stdout?.pause();
  await sleep(1500);
  child.kill('SIGINT');
  assert.equal(await Promise.race([ended, sleep(3000, 'never', { ref: false })]), 7);
});

test('a signal ends the reading at once', async (t) => {
  const { child, ended, output } = leave(t, TICKING);
  assert.equal(await until(() => output().includes('tick'), 5000), true);
  await sleep(700);
  child.kill('SIGTERM');
  assert.equal(await Promise.race([ended, sleep(2000, 'never', { ref: false })]), 7);
});
