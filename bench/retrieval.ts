// Retrieval as an agent against a bare Fastify route with the same schema, at several numbers of connections, and at half of full
// load. Every answer must be 200, and the log must grow by exactly as many entries.

import { BenchVault, SMALL } from './bench-vault.ts';
import { contest, type Round, rateRatio, type Side, sumUpLoads } from './compare.ts';
import type { LoadResult } from './loads.ts';
import { sumUp } from './measure.ts';
import { startBare } from './program.ts';
import type { Curve, Figure, Findings, Measure, Stage } from './types.ts';

export const CONNECTIONS = 64;

/** Of the times of a load. */
const PERCENTILES: readonly (readonly [name: string, of: (load: LoadResult) => number])[] = [
  ['p50', ({ p50Ms }) => p50Ms],
  ['p99', ({ p99Ms }) => p99Ms],
  ['p99.9', ({ p999Ms }) => p999Ms],
];

interface Contest {
  readonly connections: number;
  readonly service: readonly Round[];
  readonly bare: readonly Round[];
}

export async function measureRetrieval(stage: Stage): Promise<Findings> {
  const { scope, say, plan, generator } = stage;
  const vault = await BenchVault.start(stage, SMALL);
  const bare = await startBare(scope);
  const service: Side = { name: 'Leasehold', program: vault.program, target: vault.target };
  const other: Side = { name: 'bare Fastify', program: bare, target: { ...vault.target, address: bare.address } };

  const contests: Contest[] = [];
  for (const connections of plan.connections) {
    const label = `Retrieval at ${connections}`;
    const [ofBare = [], ofService = []] = await contest(stage, [other, service], {
      label,
      connections,
      seconds: plan.seconds,
    });
    contests.push({ connections, service: ofService, bare: ofBare });
  }
  contests.sort((a, b) => a.connections - b.connections);

  const full = contests.find(({ connections }) => connections === CONNECTIONS)?.service ?? [];
  const perSecond = sumUpLoads(full, (load) => load.perSecond).value / 2;
  const before = await vault.countEntries();
  const halves: LoadResult[] = [];
  const bareHalves: LoadResult[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const job = { kind: 'paced', connections: CONNECTIONS, perSecond, seconds: plan.halfSeconds } as const;
    bareHalves.push(await generator.run({ ...job, target: other.target }));
    halves.push(await generator.run({ ...job, target: service.target }));
  }
  const answered = halves.reduce((sum, load) => sum + load.answered, 0);
  const grown = (await vault.countEntries()) - before;
  if (grown !== answered) throw new Error(`the log grew by ${grown} entries for ${answered} retrievals`);
  say(`Retrieval: half load, ${Math.round(perSecond)}/s, done`);

  const entries = await vault.countEntries();
  await vault.stop();
  const rounds = plan.rounds;
  const half = (name: string, loads: readonly LoadResult[], limit: number | null): Figure => ({
    name,
    unit: 'ms',
    rounds,
    ...sumUp(loads.map(({ p99Ms }) => p99Ms)),
    required: limit === null ? null : { kind: 'at most', limit },
  });
  const bytes = (vault.bytesOnDisk() - vault.bytesWhenGrown) / (entries - SMALL.entries);
  await bare.stop();
  return {
    figures: [
      ...contests.flatMap((each) => figuresOf(each, rounds)),
      half('Retrieval, half of full load, p99', halves, 5),
      half('Bare Fastify at the same rate, p99', bareHalves, null),
      {
        name: 'Bytes on disk for a retrieval: entry and lease',
        unit: 'B',
        rounds: 1,
        value: bytes,
        low: bytes,
        high: bytes,
        required: null,
      },
    ],
    curves: curvesOf(contests),
    notes: [
      `At half load ${Math.round(perSecond)} requests a second were due over ${CONNECTIONS} connections, each timed from when it was due; the log grew by exactly the ${answered} that were answered.`,
      generatorNote(contests),
    ],
  };
}

function figuresOf({ connections, service, bare }: Contest, rounds: number): Figure[] {
  const at = `${connections} connection${connections === 1 ? '' : 's'}`;
  const isRequired = connections === CONNECTIONS;
  const figure = (what: string, unit: string, measure: Measure): Figure => ({
    name: `Retrieval, ${at}, ${what}`,
    unit,
    rounds,
    ...measure,
    required: null,
  });
  const cpu = (played: readonly Round[]) => played.flatMap(({ cpuMicroseconds }) => cpuMicroseconds ?? []);
  const [cpuOfService, cpuOfBare] = [cpu(service), cpu(bare)];
  const cpuRatios = cpuOfService.map((own, index) => (cpuOfBare[index] ?? Number.NaN) / own);
  return [
    {
      ...figure('of bare Fastify', '', rateRatio(service, bare)),
      required: isRequired ? { kind: 'at least', limit: 0.5 } : null,
    },
    figure(
      'rate',
      '/s',
      sumUpLoads(service, (load) => load.perSecond),
    ),
    ...PERCENTILES.map(([name, of]) => figure(name, 'ms', sumUpLoads(service, of))),
    {
      ...figure(
        '',
        '/s',
        sumUpLoads(bare, (load) => load.perSecond),
      ),
      name: `Bare Fastify, ${at}, rate`,
    },
    ...(isRequired && cpuRatios.length > 0
      ? [
          figure('of bare Fastify by processor time', '', sumUp(cpuRatios)),
          figure('processor time', 'µs', sumUp(cpuOfService)),
          { ...figure('', 'µs', sumUp(cpuOfBare)), name: `Bare Fastify, ${at}, processor time` },
        ]
      : []),
  ];
}

function curvesOf(contests: readonly Contest[]): Curve[] {
  const series = (name: string, of: (each: Contest) => Measure) => ({
    name,
    points: contests.map((each) => ({ x: each.connections, ...of(each) })),
  });
  const xLabel = 'connections';
  return [
    {
      name: 'rate',
      title: 'Requests a second',
      xLabel,
      yLabel: 'requests a second',
      isLogarithmic: false,
      series: [
        series('Leasehold', ({ service }) => sumUpLoads(service, (load) => load.perSecond)),
        series('bare Fastify', ({ bare }) => sumUpLoads(bare, (load) => load.perSecond)),
      ],
    },
    {
      name: 'latency',
      title: 'Time of a retrieval under full load',
      xLabel,
      yLabel: 'milliseconds',
      isLogarithmic: true,
      series: PERCENTILES.map(([name, of]) => series(name, ({ service }) => sumUpLoads(service, of))),
    },
  ];
}

function generatorNote(contests: readonly Contest[]): string {
  const found = contests.find(({ connections }) => connections === CONNECTIONS);
  const busy = (rounds: readonly Round[]) => `${(sumUpLoads(rounds, ({ busy }) => busy).value * 100).toFixed(0)} %`;
  return `At ${CONNECTIONS} connections the generator itself took ${busy(found?.service ?? [])} of a core beside Leasehold and ${busy(found?.bare ?? [])} beside bare Fastify. It shares the cores with what it measures: a server faster than the generator looks slower than it is.`;
}
