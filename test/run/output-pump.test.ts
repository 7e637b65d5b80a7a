// The output of a program passes a masker, from a pipe or a pseudo-terminal, also after the program has ended.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { spawn } from '@lydell/node-pty';
import { createMasking } from '../../src/masking/masking.ts';
import { MaskingStream, pumpOutput } from '../../src/run/output-pump.ts';
import { PtyOutput } from '../../src/run/pty.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

/** Output that continues, as of a background process. */
function endlessOutput(t: TestContext): PassThrough {
  const source = new PassThrough();
  const writing = setInterval(() => source.write('tick\n'), 10);
  t.after(() => clearInterval(writing));
  return source;
}

test('the output that continues after the program is read until its limit, or until the pump is stopped', async (t) => {
  const ended: string[] = [];
  const finish = async (how: 'at the limit' | 'stopped'): Promise<void> => {
    const pump = pumpOutput(endlessOutput(t), createMasking([]), new PassThrough().resume(), false);
    const finished = pump.finish();
    if (how === 'stopped') pump.stop();
    await finished;
    ended.push(how);
  };
  await Promise.all([finish('at the limit'), finish('stopped')]);
  assert.deepEqual(ended, ['stopped', 'at the limit']);
});

test('a masking stream shows a prompt when the source is idle, and passes on everything at its end', async () => {
  const stream = new MaskingStream(createMasking([['V', new Secret(': hunter2')]]));
  let shown = '';
  const prompted = Promise.withResolvers<void>();
  stream.on('data', (chunk) => {
    shown += chunk;
    if (shown === 'password: ') prompted.resolve();
  });
  stream.write('password: ');
  await prompted.promise;
  stream.end('hunte');
  await new Promise((resolve) => stream.on('end', resolve));
  assert.equal(shown, 'password: hunte');
});

/** A slow terminal blocks this process, and the package closes a pseudo-terminal 200 ms after the program's end. */
const BLOCKED_MS = 250;
const clock = new Int32Array(new SharedArrayBuffer(4));

test('all output of a program is read although writing each chunk of it blocks', async () => {
  const masked = new MaskingStream(createMasking([['A', new Secret('correct horse')]]));
  let shown = '';
  masked.on('data', (chunk: Buffer) => {
    if (Atomics.wait(clock, 0, 0, BLOCKED_MS) === 'timed-out') shown += chunk.toString();
  });
  const pty = spawn('seq', ['9000'], { env: { PATH: process.env['PATH'] }, encoding: null });
  const output = new PtyOutput(pty, masked);
  await new Promise((resolve) => pty.onExit(resolve));
  output.flush();
  masked.end();
  await new Promise((resolve) => masked.once('end', resolve));
  assert.equal(shown, Array.from({ length: 9000 }, (_, at) => `${at + 1}\r\n`).join(''));
});
