// Full load on several servers, round by round in turns, so that whatever else the machine does falls on all of them.

import type { LoadResult, Target } from './loads.ts';
import { processorSeconds, sumUp } from './measure.ts';
import type { Program } from './program.ts';
import type { Measure, Stage } from './types.ts';

export interface Side {
  readonly name: string;
  readonly program: Program;
  readonly target: Target;
}

export interface Round {
  readonly load: LoadResult;
  /** Processor time of the server for one request; null where the system does not tell. */
  readonly cpuMicroseconds: number | null;
}

interface Rules {
  readonly label: string;
  readonly connections: number;
  readonly seconds: number;
}

const WARM_UP_PER_CONNECTION = 1000;

/** The rounds of each side, in their order. */
export async function contest(
  stage: Stage,
  sides: readonly Side[],
  { label, connections, seconds }: Rules,
): Promise<Round[][]> {
  const { plan, say } = stage;
  const amounts: number[] = [];
  for (const side of sides) {
    // Few connections take long for many requests.
    const warmUp = Math.max(connections, Math.min(plan.warmUpRequests, connections * WARM_UP_PER_CONNECTION));
    await playRound(stage, side, connections, warmUp);
    const { load } = await playRound(stage, side, connections, Math.max(connections, Math.ceil(warmUp / 3)));
    amounts.push(Math.max(connections, Math.round(load.perSecond * seconds)));
  }
  const played: Round[][] = sides.map(() => []);
  for (let number = 1; number <= plan.rounds; number++) {
    // Who comes behind whom changes with each round: what one leaves to the disk falls on the next.
    const order = number % 2 === 1 ? [...sides.entries()] : [...sides.entries()].reverse();
    for (const [index, side] of order) {
      played[index]?.push(await playRound(stage, side, connections, amounts[index] ?? connections));
    }
    const rates = sides.map(({ name }, index) => `${name} ${Math.round(played[index]?.at(-1)?.load.perSecond ?? 0)}/s`);
    say(`${label}: round ${number} of ${plan.rounds}: ${rates.join(', ')}`);
  }
  return played;
}

async function playRound(
  { generator }: Stage,
  { program, target }: Side,
  connections: number,
  amount: number,
): Promise<Round> {
  const before = processorSeconds(program.pid);
  const load = await generator.run({ kind: 'full', target, connections, amount });
  const after = processorSeconds(program.pid);
  return { load, cpuMicroseconds: before === null || after === null ? null : ((after - before) / load.answered) * 1e6 };
}

export function sumUpLoads(rounds: readonly Round[], get: (load: LoadResult) => number): Measure {
  return sumUp(rounds.map(({ load }) => get(load)));
}

/** How much of the other side's rate this one had, round by round. */
export function rateRatio(rounds: readonly Round[], others: readonly Round[]): Measure {
  return sumUp(rounds.map(({ load }, index) => load.perSecond / (others[index]?.load.perSecond ?? Number.NaN)));
}
