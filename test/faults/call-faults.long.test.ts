// Failing system calls of the real service, from its first start to its stop. SOURCE: SECURITY.md, P7 and P10.
// `SEED=n` repeats the choice of faults.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { FaultCampaign } from './fault-campaign.ts';
import { PHASES, runFaultRound } from './fault-rounds.ts';
import { LoadedVault } from './loaded-vault.ts';
import { wayOfFaults } from './supervised.ts';

const seed = newSeed();
const FAULTS = scaled(3, 20);
/** The calls of each phase are counted first, which takes as long as a fault. */
const PHASE_COUNT = scaled(2, PHASES.length);

test(`${FAULTS} faults of the disk lose no acknowledged change, and no success is false (SEED=${seed})`, async (t) => {
  const campaign = new FaultCampaign(temporaryDirectory(t), new Dice(seed), PHASE_COUNT);
  const done: string[] = [];
  while (campaign.tally.rounds < FAULTS) {
    await campaign.next((plan) => done.push(JSON.stringify(plan)));
  }
  campaign.end();
  t.diagnostic(`by the ${wayOfFaults()}: ${done.join(' ')}`);
  t.diagnostic(JSON.stringify(campaign.tally));
});

test('a service whose stop cannot be written exits with 1 and one line', async (t) => {
  const vault = new LoadedVault(join(temporaryDirectory(t), 'data'), new Dice(seed));
  await vault.prepare();
  const fault = { calls: ['fdatasync'], error: 'EIO', after: 0, times: null } as const;
  const { exitCode } = await runFaultRound(t, vault, 'stop', fault);
  assert.equal(exitCode, 1);
  await vault.inspect();
});
