// Every amount of free space from 0 to 100 KiB in steps of 4 KiB, at startup and under a running server. `SEED=n`
// repeats the offset of the steps.

import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { type SweepRequest, sweep } from './small-disk.ts';

const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));
const STEP_KIB = 4;
const LARGEST_KIB = 100;

for (const fileSystem of ['tmpfs', 'ext4'] as const) {
  test(`each amount of free space on ${fileSystem}: no signal, no loss, one line (SEED=${seed})`, async (t) => {
    const trials: SweepRequest['trials'][number][] = [];
    for (let freeKib = seed % STEP_KIB; freeKib <= LARGEST_KIB; freeKib += STEP_KIB) {
      for (const state of ['fresh', 'existing', 'with a log'] as const) trials.push([state, freeKib, false]);
      if (freeKib % (4 * STEP_KIB) < STEP_KIB) trials.push(['existing', freeKib, true]);
    }
    const done = await sweep(t, { fileSystem, trials });
    const served = done.filter(({ ended }) => ended === 'served').length;
    t.diagnostic(`${done.length} trials, ${served} served`);
  });
}
