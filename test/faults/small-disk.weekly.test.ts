// Free space from 0 to 100 KiB, and around the need of a startup, both at startup and under a running server. `SEED=n`
// repeats the offset of the steps.

import { test } from 'node:test';
import { newSeed } from '../kit/dice.ts';
import { type SweepRequest, sweep } from './small-disk.ts';

const seed = newSeed();
const STEP_KIB = 8;
const LARGEST_KIB = 100;
const AROUND_THE_NEED_KIB = [1010, 1030, 1050, 1100, 1200, 1400, 1800];

for (const fileSystem of ['tmpfs', 'ext4'] as const) {
  test(`each amount of free space on ${fileSystem}: no signal, no loss, one line (SEED=${seed})`, async (t) => {
    const trials: SweepRequest['trials'][number][] = [];
    const states = ['fresh', 'existing', 'with a log'] as const;
    for (let freeKib = seed % STEP_KIB; freeKib <= LARGEST_KIB; freeKib += STEP_KIB) {
      trials.push([states[trials.length % states.length] ?? 'fresh', freeKib, false]);
      if (freeKib % (4 * STEP_KIB) < STEP_KIB) trials.push(['existing', freeKib, true]);
    }
    // The two at which a signal ended the server once.
    for (const freeKib of [7, 39]) for (const state of states) trials.push([state, freeKib, false]);
    for (const freeKib of AROUND_THE_NEED_KIB) for (const state of states) trials.push([state, freeKib, false]);
    for (const freeKib of [250, 280, 400]) trials.push(['existing', freeKib, true]);
    const done = await sweep(t, { fileSystem, trials });
    const served = done.filter(({ ended }) => ended === 'served').length;
    t.diagnostic(`${done.length} trials, ${served} served`);
  });
}
