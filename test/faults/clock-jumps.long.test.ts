// A wall clock that jumps under load. SOURCE: SECURITY.md, P6; the rules of the clock are in test/ledger/clock.test.ts.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { Dice } from '../e2e/random.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { jumpUnderLoad } from './clock-jumps.ts';

const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31));

test(`while the clock jumps, times never fall, no lease is extended and nothing is lost (SEED=${seed})`, async (t) => {
  const { acknowledged } = await jumpUnderLoad(temporaryDirectory(t), new Dice(seed), 20);
  assert.ok(acknowledged > 50);
});
