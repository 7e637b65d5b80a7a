// A masker between two streams.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from '../../src/core/secret.ts';
import { createMasking } from '../../src/masking/masking.ts';
import { MaskingStream } from '../../src/run/output-pump.ts';

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
