/** The kinds of rounds of `npm run torture`: each prepares what it needs once, and counts what it did. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runRounds } from '../e2e/crash-rounds.ts';
import type { Dice } from '../e2e/random.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { type AttackedVault, openAttackedVault } from './attacked-vault.ts';
import { flipEveryBit } from './bit-flips.ts';
import { jumpUnderLoad } from './clock-jumps.ts';
import { DamageCampaign } from './damage-campaign.ts';
import { flipExport } from './export-flips.ts';
import { FaultCampaign } from './fault-campaign.ts';
import { buildKnownLog, ENTRIES } from './known-log.ts';
import { ATTACKS } from './log-attacks.ts';
import { type CutTally, cutPower, recordRun } from './power-cuts.ts';

/** What was done, in words for the page, and how often. */
export type Figures = Readonly<Record<string, number>>;

export interface Campaign {
  /** @throws the first failure */
  round(): Promise<void>;
  figures(): Figures;
  /** What the last round did, for the report of a failure. */
  describe(): string;
  end(): Promise<void> | void;
}

type Activity = (directory: string, dice: Dice) => Promise<Campaign>;

const KILLS = 5;
const CUTS_OF_A_RECORDING = 20;
const DAMAGED_A_ROUND = 40;
const FLIPPED_ENTRIES_A_ROUND = 50;
const FLIPS_OF_EXPORT_A_ROUND = 10;
const JUMPS = 40;
const LOAD_MS = 300;
const nothing = (): void => undefined;

/** A scope that ends with the campaign. */
function newScope(): { scope: Scope; end(): Promise<void> } {
  const cleaning = new AsyncDisposableStack();
  return {
    scope: { after: (cleanUp) => cleaning.defer(async () => void (await cleanUp())) },
    end: () => cleaning.disposeAsync(),
  };
}

/** Runs each round in a separate directory, which is kept after a failure. */
function newRounds(directory: string, work: (own: string) => Promise<void>): () => Promise<void> {
  let rounds = 0;
  return async () => {
    rounds += 1;
    const own = join(directory, String(rounds));
    mkdirSync(own);
    await work(own);
    rmSync(own, { recursive: true });
  };
}

const calls: Activity = async (directory, dice) => {
  const campaign = new FaultCampaign(directory, dice);
  let last = '';
  return {
    round: () =>
      campaign.next((plan) => {
        last = JSON.stringify(plan);
      }),
    figures() {
      const { rounds, failures, refusals, stops, acknowledged, inFlight } = campaign.tally;
      return {
        'starts with failing calls': rounds,
        'calls that failed': failures,
        'rejected starts': refusals,
        'services that stopped themselves': stops,
        'acknowledged under failing calls': acknowledged,
        'unanswered or 503 under failing calls': inFlight,
      };
    },
    describe: () => last,
    end: nothing,
  };
};

const power: Activity = async (directory, dice) => {
  const tally: CutTally = { cuts: 0, acknowledged: 0, inFlight: 0, happened: 0 };
  const round = newRounds(directory, async (own) => {
    const run = await recordRun(own, dice, LOAD_MS, dice.chance(0.15));
    for (let cut = 0; cut < CUTS_OF_A_RECORDING; cut++) {
      const into = join(own, `cut-${cut}`);
      await cutPower(run, into, dice, tally);
      rmSync(into, { recursive: true });
    }
  });
  return {
    round,
    figures: () => ({ 'power cuts': tally.cuts, 'acknowledged before power cuts': tally.acknowledged }),
    describe: () => `cut ${tally.cuts + 1}`,
    end: nothing,
  };
};

const kills: Activity = async (directory, dice) => {
  const total = { kills: 0, acknowledged: 0 };
  let seed = 0;
  const round = newRounds(directory, async (own) => {
    seed = dice.below(2 ** 31);
    const tally = await withScope((scope) => runRounds(scope, join(own, 'data'), seed, nothing, KILLS));
    total.kills += KILLS;
    total.acknowledged += tally.acknowledged;
  });
  return {
    round,
    figures: () => ({ 'kills under load': total.kills, 'acknowledged before kills': total.acknowledged }),
    describe: () => `SEED=${seed} of the crash test`,
    end: nothing,
  };
};

const damage: Activity = async (directory, dice) => {
  const campaign = await DamageCampaign.begin(directory, dice);
  return {
    async round() {
      for (let vault = 0; vault < DAMAGED_A_ROUND; vault++) await campaign.next();
    },
    figures() {
      const { vaults, refused, reported, missing, intact } = campaign.tally;
      return {
        'damaged vaults': vaults,
        'damaged vaults that did not start': refused,
        'damaged vaults with errors': reported,
        'damaged vaults with a credential not found': missing,
        'damaged vaults with every value intact': intact,
      };
    },
    describe: () => `vault ${campaign.tally.vaults + 1}`,
    end: nothing,
  };
};

const log: Activity = async (_, dice) => {
  const { scope, end } = newScope();
  const known = await buildKnownLog(scope, ENTRIES, dice.below(2 ** 31));
  const vault: AttackedVault = await openAttackedVault(scope, known);
  const total = { flips: 0, exportFlips: 0, attacks: 0 };
  let from = 0;
  let last = '';
  return {
    async round() {
      const to = from + FLIPPED_ENTRIES_A_ROUND;
      last = `entries ${from} to ${to}`;
      total.flips += flipEveryBit(known.entries, known.auditKey, (index) => index >= from && index < to);
      from = to >= known.entries.length ? 0 : to;
      await flipExport(scope, known, FLIPS_OF_EXPORT_A_ROUND, dice.below(2 ** 31));
      total.exportFlips += FLIPS_OF_EXPORT_A_ROUND;
      for (const [what, attacker] of Object.entries(ATTACKS)) {
        const attack = attacker(vault.log, dice);
        last = `${what}: ${attack.sql}`;
        const found = await vault.verify(attack);
        if (found !== attack.breakAt) throw new Error(`found at ${found} instead of ${attack.breakAt}`);
        if (found === null && (await vault.starts(attack))) throw new Error('a rolled-back log was accepted');
        total.attacks += 1;
      }
    },
    figures: () => ({
      'bits of the log flipped': total.flips,
      'bits of an export flipped': total.exportFlips,
      'structural attacks': total.attacks,
    }),
    describe: () => last,
    end,
  };
};

const clock: Activity = async (directory, dice) => {
  const total = { jumps: 0, acknowledged: 0 };
  const round = newRounds(directory, async (own) => {
    const { jumps, acknowledged } = await jumpUnderLoad(own, dice, JUMPS);
    total.jumps += jumps;
    total.acknowledged += acknowledged;
  });
  return {
    round,
    figures: () => ({ 'clock jumps': total.jumps, 'acknowledged under clock jumps': total.acknowledged }),
    describe: () => '',
    end: nothing,
  };
};

/** By name, with the shares of the time. */
export const ACTIVITIES: Readonly<Record<string, { readonly begin: Activity; readonly share: number }>> = {
  calls: { begin: calls, share: 6 },
  power: { begin: power, share: 4 },
  kills: { begin: kills, share: 2 },
  damage: { begin: damage, share: 6 },
  log: { begin: log, share: 2 },
  clock: { begin: clock, share: 1 },
};
