/** A slow terminal blocks this process, and the package closes a pseudo-terminal 200 ms after the program's end. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawn } from '@lydell/node-pty';
import { createMasking } from '../../src/masking/masking.ts';
import { MaskingStream } from '../../src/run/output-pump.ts';
import { PtyOutput } from '../../src/run/pty.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

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
