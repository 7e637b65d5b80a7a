// A decision in process, by core's own compiled index, among few policies and among many: rounds take turns among the sizes.

import { decide } from '../src/core/decision.ts';
import type { CredentialPath } from '../src/core/path.ts';
import { PolicyIndex } from '../src/core/policy-index.ts';
import { sumUp } from './measure.ts';
import { benchAgent, benchPath, benchPolicy, randomBelow } from './targets.ts';
import type { Findings, Stage } from './types.ts';

const SIZES = [10, 100, 1000, 10_000];
const PATHS = 1_000_000;

export async function measureDecision({ plan, say }: Stage): Promise<Findings> {
  const sides = SIZES.map((size) => ({ size, policies: indexOf(size), microseconds: [] as number[] }));
  // The first is not counted.
  for (let round = 0; round <= plan.rounds; round++) {
    for (const { policies, microseconds } of sides) {
      const taken = timeDecisions(policies, plan.decisions);
      if (round > 0) microseconds.push(taken);
    }
  }
  const points = sides.map(({ size, microseconds }) => ({ x: size, ...sumUp(microseconds) }));
  const [few, most] = [sides[0], sides.at(-1)];
  const ratios = most?.microseconds.map((time, index) => time / (few?.microseconds[index] ?? Number.NaN)) ?? [];
  say(`Decision: ${points.map(({ x, value }) => `${value.toFixed(2)} µs among ${x}`).join(', ')}`);
  const { rounds } = plan;
  return {
    figures: [
      ...points.map(({ x, ...measure }) => ({
        name: `Decision among ${x.toLocaleString('en-US')} policies`,
        unit: 'µs',
        rounds,
        ...measure,
        required: x === 10_000 ? ({ kind: 'at most', limit: 2 } as const) : null,
      })),
      { name: 'Decision among 10,000 policies, of among 10', unit: '', rounds, ...sumUp(ratios), required: null },
    ],
    curves: [
      {
        name: 'decision',
        title: 'A decision by the number of policies',
        xLabel: 'policies',
        yLabel: 'microseconds',
        isLogarithmic: false,
        series: [{ name: 'decision', points }],
      },
    ],
    notes: ['Decisions are timed in process, on strings that V8 has not seen before, as those of requests are.'],
  };
}

function indexOf(size: number): PolicyIndex {
  const policies = new PolicyIndex();
  for (let index = 0; index < size; index++) policies.put({ ...benchPolicy(index), createdAt: 0 });
  return policies;
}

/** Microseconds for one. */
function timeDecisions(policies: PolicyIndex, count: number): number {
  const agents = Array.from({ length: 64 }, (_, index) => benchAgent(index));
  const paths = Array.from({ length: count }, () => fresh(benchPath(randomBelow(PATHS))));
  let allowed = 0;
  const startedAt = performance.now();
  for (const [index, path] of paths.entries()) {
    const agent = agents[index % agents.length];
    if (agent !== undefined && decide(policies, agent, 'retrieve', path).allowed) allowed += 1;
  }
  const taken = performance.now() - startedAt;
  if (allowed !== count) throw new Error(`of ${count} decisions ${allowed} allowed what they must`);
  return (taken * 1000) / count;
}

/** The same text in a string of its own, flat, and never looked up before. */
function fresh(path: CredentialPath): CredentialPath {
  return Buffer.from(path, 'latin1').toString('latin1') as CredentialPath;
}
