// Losses of power at any moment of a run of the real service. SOURCE: SECURITY.md, P7. `SEED=n` repeats the cuts of a
// recording. test/sqlite/power-cut.long.test.ts tests the store alone, which needs no recording.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { type CutTally, cutPower, recordRun } from './power-cuts.ts';

const seed = newSeed();
const CUTS = scaled(6, 40);
const LOAD_MS = 300;

test(`${CUTS} losses of power under load lose no acknowledged change, and need no flag (SEED=${seed})`, async (t) => {
  const dice = new Dice(seed);
  const directory = temporaryDirectory(t);
  const run = await recordRun(directory, dice, LOAD_MS, false);
  const tally: CutTally = { cuts: 0, acknowledged: 0, inFlight: 0, happened: 0 };
  // More cuts where none met a request in flight.
  for (let cut = 0; cut < CUTS || (tally.inFlight === 0 && cut < 10 * CUTS); cut++) {
    await cutPower(run, join(directory, `cut-${cut}`), dice, tally);
  }
  t.diagnostic(JSON.stringify(tally));
  assert.ok(tally.acknowledged > 0 && tally.inFlight > 0);
});

test('a loss of power during the first start or its stop leaves a directory that can be started', async (t) => {
  const dice = new Dice(seed);
  const directory = temporaryDirectory(t);
  const run = await recordRun(directory, dice, 0, true);
  const tally: CutTally = { cuts: 0, acknowledged: 0, inFlight: 0, happened: 0 };
  for (let cut = 0; cut < CUTS; cut++) await cutPower(run, join(directory, `cut-${cut}`), dice, tally);
});
