// Copying a program's output through a masker, also after the program has ended.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from '../../src/core/secret.ts';
import { createMasking } from '../../src/masking/masking.ts';
import { MaskingStream, pumpOutput } from '../../src/run/output-pump.ts';

/** Shorter than the limit for processes that still write. */
const BEFORE_LIMIT_MS = 3000;

/** Output that continues, as of a background process. */
function endlessOutput(t: TestContext): PassThrough {
  const source = new PassThrough();
  const writing = setInterval(() => source.write('tick\n'), 10);
  t.after(() => clearInterval(writing));
  return source;
}

async function endsEarly(t: TestContext, isStopped: boolean): Promise<boolean> {
  const pump = pumpOutput(endlessOutput(t), createMasking([]), new PassThrough().resume(), false);
  const finished = pump.finish();
  if (isStopped) pump.stop();
  return Promise.race([finished.then(() => true), sleep(BEFORE_LIMIT_MS, false)]);
}

test('the output that continues after the program is read until its limit, or until the pump is stopped', async (t) => {
  assert.deepEqual(await Promise.all([endsEarly(t, false), endsEarly(t, true)]), [false, true]);
});

test('a masking stream shows a prompt when the source is idle, and passes on everything at its end', async () => {
  const stream = new MaskingStream(createMasking([['V', new Secret(': hunter2')]]));
  let shown = '';
  stream.on('data', (chunk) => (shown += chunk));
  stream.write('password: ');
  for (let waited = 0; shown !== 'password: ' && waited < 5000; waited += 10) await sleep(10);
  assert.equal(shown, 'password: ');
  stream.end('hunte');
  await new Promise((resolve) => stream.on('end', resolve));
  assert.equal(shown, 'password: hunte');
});
