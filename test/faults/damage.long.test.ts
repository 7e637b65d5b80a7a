// Randomly damaged files of a vault: the right value, an error, or a refused start. SOURCE: SECURITY.md, P5 and P10.
// `SEED=n` repeats the damage.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { DamageCampaign } from './damage-campaign.ts';

const seed = newSeed();
const VAULTS = scaled(40, 200);

test(`${VAULTS} damaged vaults return no wrong value and never pass as new ones (SEED=${seed})`, async (t) => {
  const campaign = await DamageCampaign.begin(temporaryDirectory(t), new Dice(seed));
  for (let vault = 0; vault < VAULTS; vault++) await campaign.next();
  t.diagnostic(JSON.stringify(campaign.tally));
  assert.ok(campaign.tally.refused > 0 && campaign.tally.intact > 0);
});
