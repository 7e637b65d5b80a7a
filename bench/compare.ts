// Several loads in alternating rounds, so that other work on the machine affects all of them.

import { processorSeconds } from './measurement.ts';
import type { Program } from './program.ts';
import type { LoadResult, Stage, Target } from './types.ts';

export interface Side<R extends LoadResult> {
  readonly name: string;
  run(amount: number): Promise<R>;
}

interface Rules {
  /** Requests before the first round. */
  readonly warmUp: number;
  /** Length of a round. */
  readonly seconds: number;
}

/** Retrievals from one server. */
export interface Round extends LoadResult {
  /** Processor time of the server for a request. */
  readonly cpuMicroseconds: number;
}

/** The rounds of each side. */
export async function compare<R extends LoadResult>(
  { plan, say }: Stage,
  sides: readonly Side<R>[],
  { warmUp, seconds }: Rules,
): Promise<R[][]> {
  const all = sides.map((side) => ({ side, amount: warmUp, rounds: [] as R[] }));
  for (const each of all) {
    await each.side.run(warmUp);
    const { perSecond } = await each.side.run(Math.ceil(warmUp / 3));
    each.amount = Math.max(1, Math.round(perSecond * seconds));
  }
  for (let number = 1; number <= plan.rounds; number++) {
    // WHY in changing order: the disk work that one side leaves behind slows down the next.
    for (const { side, amount, rounds } of number % 2 === 1 ? all : all.toReversed())
      rounds.push(await side.run(amount));
    const rates = all.map(({ side, rounds }) => `${side.name} ${Math.round(rounds.at(-1)?.perSecond ?? 0)}/s`);
    say(`Round ${number} of ${plan.rounds}: ${rates.join(', ')}`);
  }
  return all.map(({ rounds }) => rounds);
}

export function retrievals(
  { generator }: Stage,
  name: string,
  program: Program,
  target: Target,
  connections: number,
): Side<Round> {
  return {
    name,
    async run(amount) {
      const before = processorSeconds(program.pid);
      const load = await generator.run({
        kind: 'retrievals',
        target,
        connections,
        amount: Math.max(amount, connections),
      });
      return { ...load, cpuMicroseconds: ((processorSeconds(program.pid) - before) / load.answered) * 1e6 };
    },
  };
}

/** Round by round. */
export function rateRatios(measured: readonly LoadResult[], baseline: readonly LoadResult[]): number[] {
  return measured.map(({ perSecond }, index) => perSecond / (baseline[index]?.perSecond ?? Number.NaN));
}
