/** Kills the service under load. `SEED=n` repeats a load; `npm run test:weekly` kills more often. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { ROUNDS, runRounds } from './crash-rounds.ts';

const seed = newSeed();
const kills = scaled(1, ROUNDS);

test(`kills under load (${kills}) lose no acknowledged change and leave no partial one (SEED=${seed})`, async (t) => {
  const { acknowledged, inFlight, happened, entries } = await runRounds(
    t,
    join(temporaryDirectory(t), 'data'),
    seed,
    () => {},
    kills,
  );
  t.diagnostic(
    `${kills} kills, ${acknowledged} acknowledged, 0 lost; ${inFlight} in flight, of which ${happened} had happened; ${entries} entries`,
  );
  assert.ok(acknowledged > 10 * kills, 'the load was one');
  assert.ok(inFlight > 0, 'the kills met the service at work');
});
