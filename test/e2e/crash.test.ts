/** `SEED=n` repeats a load; `SLOW=1` runs ten times as many rounds. `npm run torture` runs as many as one likes. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../kit/directory.ts';
import { ROUNDS, runRounds } from './crash-rounds.ts';

const { SEED, SLOW } = process.env;
const firstSeed = SEED === undefined ? randomInt(2 ** 31) : Number(SEED);

for (let run = 0; run < (SLOW ? 10 : 1); run++) {
  const seed = firstSeed + run;
  test(`${ROUNDS} kills under load lose nothing that was acknowledged, and leave nothing half done (SEED=${seed})`, async (t) => {
    const { acknowledged, inFlight, happened, entries } = await runRounds(t, join(temporaryFolder(t), 'data'), seed);
    t.diagnostic(
      `${ROUNDS} kills, ${acknowledged} acknowledged, 0 lost; ${inFlight} in flight, of which ${happened} had happened; ${entries} entries`,
    );
    assert.ok(acknowledged > 10 * ROUNDS, 'the load was one');
    assert.ok(inFlight > 0, 'the kills met the service at work');
  });
}
