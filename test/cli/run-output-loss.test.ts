// `leasehold run` when its own output cannot be written: the program ends and its leases are revoked.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openScene } from './run-fixture.ts';

const scene = await openScene({ after });
const trace = join(scene.home.path, 'trace');

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly text: string;
}

/** Runs a script with redirected streams; the text is the output that was not redirected. */
async function run(script: string, redirection: string, ...flags: readonly string[]): Promise<Ended> {
  const words = scene.run('--env', 'A=prod/a', ...flags, '--', 'sh', '-c', script);
  const child = spawn('sh', ['-c', `exec "$@" ${redirection}`, '-', ...words], {
    env: { ...scene.environment, TRACE: trace },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<Pick<Ended, 'code' | 'signal'>>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  );
  const texts = await Promise.all([child.stdout, child.stderr].map((stream) => stream.toArray()));
  return { ...(await ended), text: texts.flat().join('') };
}

const FULL = 'leasehold: standard output cannot be written (ENOSPC)\n';

test('with a full device as output the program is waited for, and its leases are revoked', async () => {
  const script = `trap '' PIPE; echo "$A" > "$TRACE"; echo hi; sleep 0.3; test -f "$A" && echo held >> "$TRACE"; exit 7`;
  const { code, text } = await run(script, '> /dev/full', '--files');
  assert.deepEqual([code, text], [7, FULL]);
  const [path = '', held] = readFileSync(trace, 'utf8').split('\n');
  assert.equal(held, 'held');
  assert.equal(existsSync(path), false);
  assert.equal(await scene.countActive(), 0);
});

test('lost output turns exit code 0 into 2', async () => {
  assert.deepEqual(await run('echo hi', '> /dev/full'), { code: 2, signal: null, text: FULL });
  assert.deepEqual(await run('echo hi', '> /dev/full 2>&1'), { code: 2, signal: null, text: '' });
  assert.deepEqual(await run(':', '> /dev/full'), { code: 0, signal: null, text: '' });
});

test('a program that keeps writing gets a closed pipe', async () => {
  const { code, text } = await run('exec yes', '> /dev/full');
  assert.deepEqual([code, text], [141, FULL]);
});

test('a full standard error does not end the program: its output there is discarded', async () => {
  const script = 'seq 100000 >&2; echo $?; sleep 0.3; seq 100000 >&2; echo $?';
  assert.deepEqual(await run(script, '2> /dev/full'), { code: 0, signal: null, text: '0\n0\n' });
});

test('a closed reader of standard error ends the program that writes there', async () => {
  const words = scene.run('--env', 'A=prod/a', '--', 'bash', '-c', 'yes >&2; kill -l $?');
  const child = spawn(words[0] ?? '', words.slice(1), { env: scene.environment, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.destroy();
  assert.equal((await child.stdout.toArray()).join(''), 'PIPE\n');
});

test('every other command exits with 2 immediately', async () => {
  const child = spawn('sh', ['-c', 'exec "$@" > /dev/full', '-', ...scene.run('--help')], { env: scene.environment });
  const stderr = child.stderr.toArray();
  assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 2);
  assert.equal((await stderr).join(''), 'leasehold: standard output cannot be written (ENOSPC).\n');
});
