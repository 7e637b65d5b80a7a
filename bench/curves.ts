// How retrieval goes on as a vault grows, one dimension at a time. At every point the grown service is in turns with a small one
// that stays as it is, so that a noisy machine shows in both; the curve is the ratio of the two.

import { BenchVault, SMALL } from './bench-vault.ts';
import { contest, rateRatio, type Side, sumUpLoads } from './compare.ts';
import type { Sizes } from './fixtures.ts';
import { sumUp, watchMemory } from './measure.ts';
import { CONNECTIONS } from './retrieval.ts';
import type { Curve, Figure, Findings, Measure, Point, Stage } from './types.ts';

export interface Growth {
  readonly dimension: keyof Sizes;
  readonly sizes: readonly number[];
  /** What the others are of meanwhile. */
  readonly base: Sizes;
}

interface Grown extends Point {
  readonly perSecond: Measure;
  readonly memoryMiB: number;
}

/**
 * Each size in a vault of its own: what the load on one writes must not stand in the next. `measureFirst` is done before any load.
 * The last vault is left running.
 */
export async function measureGrowth(
  stage: Stage,
  { dimension, sizes, base }: Growth,
  measureFirst: (vault: BenchVault, size: number) => Promise<void> = async () => undefined,
): Promise<{ points: Grown[]; last: BenchVault }> {
  const small = await BenchVault.start(stage, SMALL);
  const points: Grown[] = [];
  let last: BenchVault | null = null;
  for (const size of sizes) {
    await last?.remove();
    last = await BenchVault.start(stage, { ...base, [dimension]: size });
    await measureFirst(last, size);
    points.push({ x: size, ...(await measureBesideSmall(stage, small, last, `${size} ${dimension}`)) });
  }
  await small.remove();
  if (last === null) throw new Error(`there is no size of ${dimension}`);
  return { points, last };
}

export async function measureBesideSmall(
  stage: Stage,
  small: BenchVault,
  vault: BenchVault,
  label: string,
): Promise<Measure & { perSecond: Measure; memoryMiB: number }> {
  const sides: readonly Side[] = [
    { name: 'small', program: small.program, target: small.target },
    { name: 'grown', program: vault.program, target: vault.target },
  ];
  const mostMiB = watchMemory(vault.program.pid);
  const [ofSmall = [], ofGrown = []] = await contest(stage, sides, {
    label,
    connections: CONNECTIONS,
    seconds: stage.plan.curves.seconds,
  });
  return {
    ...rateRatio(ofGrown, ofSmall),
    perSecond: sumUpLoads(ofGrown, ({ perSecond }) => perSecond),
    memoryMiB: mostMiB(),
  };
}

export function ratioCurve(dimension: string, points: readonly Point[]): Curve {
  return {
    name: `retrieval-by-${dimension}`,
    title: `Retrieval by the number of ${dimension}`,
    xLabel: dimension,
    yLabel: 'rate, of that of the small service',
    isLogarithmic: false,
    series: [
      { name: 'retrieval, 64 connections', points: points.map(({ x, value, low, high }) => ({ x, value, low, high })) },
    ],
  };
}

export function growthFigures(dimension: string, points: readonly Grown[], rounds: number): Figure[] {
  const plain = { rounds, required: null } as const;
  return points.flatMap(({ x, value, low, high, perSecond }) => {
    const name = `Retrieval with ${x.toLocaleString('en-US')} ${dimension}`;
    return [
      { name: `${name}, of the small service`, unit: '', value, low, high, ...plain },
      { name: `${name}, rate`, unit: '/s', ...perSecond, ...plain },
    ];
  });
}

function memoryCurve(dimension: string, points: readonly Grown[]): Curve {
  return {
    name: `memory-by-${dimension}`,
    title: `Memory under full load by the number of ${dimension}`,
    xLabel: dimension,
    yLabel: 'MiB',
    isLogarithmic: false,
    series: [{ name: 'memory', points: points.map(({ x, memoryMiB }) => ({ x, ...sumUp([memoryMiB]) })) }],
  };
}

/** The curves that need nothing but retrievals. */
export async function measureCurves(stage: Stage): Promise<Findings> {
  const { plan } = stage;
  const { credentials, policies, agents } = plan.curves;
  const growths: readonly Growth[] = [
    { dimension: 'credentials', sizes: credentials, base: SMALL },
    { dimension: 'policies', sizes: policies, base: SMALL },
    { dimension: 'agents', sizes: agents, base: SMALL },
  ];
  const findings: Findings[] = [];
  for (const growth of growths) {
    const { points, last } = await measureGrowth(stage, growth);
    await last.remove();
    findings.push({
      figures: growthFigures(growth.dimension, points, plan.rounds),
      curves: [
        ratioCurve(growth.dimension, points),
        ...(growth.dimension === 'credentials' ? [memoryCurve(growth.dimension, points)] : []),
      ],
      notes: [],
    });
  }
  const [credentialCount, policyCount, agentCount, entryCount] = [
    SMALL.credentials,
    SMALL.policies,
    SMALL.agents,
    SMALL.entries,
  ].map((count) => count.toLocaleString('en-US'));
  const small = `${credentialCount} credentials, ${policyCount} policies, ${agentCount} agents and ${entryCount} entries`;
  return {
    figures: findings.flatMap(({ figures }) => figures),
    curves: findings.flatMap(({ curves }) => curves),
    notes: [`The small service began with ${small}; the logs of both grow with every retrieval.`],
  };
}
