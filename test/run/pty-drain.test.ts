// A terminal that is read slowly: the package and Node would close it before the rest was read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from '@lydell/node-pty';
import { drainPty } from '../../src/run/pty-drain.ts';

function open(script: string) {
  const pty = spawn('sh', ['-c', script], { env: { PATH: process.env['PATH'] } });
  const reading = drainPty(pty);
  let shown = '';
  pty.onData((text) => (shown += text));
  const ended = new Promise((resolve) => pty.onExit(resolve));
  return { reading, ended, shown: () => shown };
}

test('what a program wrote before its end is read although nobody reads for a while', async () => {
  const { reading, ended, shown } = open('seq 500');
  reading.pause();
  await sleep(800);
  assert.equal(shown(), '');
  reading.resume();
  assert.deepEqual(await ended, { exitCode: 0, signal: 0 });
  assert.equal(shown(), Array.from({ length: 500 }, (_, at) => `${at + 1}\r\n`).join(''));
});

test('whoever is left behind in the terminal is not waited for, and what it says at once is read', async () => {
  const { ended, shown } = open(`trap '' HUP; (sleep 0.1; echo late; sleep 60) & echo done; exit 3`);
  assert.deepEqual(await ended, { exitCode: 3, signal: 0 });
  assert.match(shown(), /^done\r\n(?:late\r\n)?$/);
});
