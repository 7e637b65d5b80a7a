// Retrievals of agents compared with a bare Fastify route, and retrievals at half of full load. The log must grow by
// one entry for each.

import { compare, type Round, rateRatios, retrievals } from './compare.ts';
import { median, toFigure } from './measurement.ts';
import { startBare } from './program.ts';
import type { Figure, LoadResult, Stage } from './types.ts';
import { type BenchVault, bytesOnDisk, countEntries, removeVault, SMALL, startVault } from './vault.ts';

export const CONNECTIONS = 64;

export async function measureRetrieval(stage: Stage): Promise<Figure[]> {
  const { scope, plan } = stage;
  const vault = await startVault(stage, SMALL);
  const bare = await startBare(scope);
  const { service, target } = vault;
  const baseline = retrievals(stage, 'bare Fastify', bare, { ...target, address: bare.address }, CONNECTIONS);
  const measured = retrievals(stage, 'Leasehold', service, target, CONNECTIONS);
  const { warmUpRequests: warmUp, seconds } = plan;
  const [bareRounds = [], rounds = []] = await compare(stage, [baseline, measured], { warmUp, seconds });
  const single = retrievals(stage, '1 connection', service, target, 1);
  const [singleRounds = []] = await compare(stage, [single], { warmUp: warmUp / 20, seconds });
  await bare.stop();
  const halfLoads = await measureHalfLoad(stage, vault, median(rounds.map(({ perSecond }) => perSecond)) / 2);
  const cpu = (each: readonly Round[]): number[] => each.map(({ cpuMicroseconds }) => cpuMicroseconds);
  return [
    ...loadFigures('Retrieval, 1 connection', singleRounds),
    ...loadFigures(`Retrieval, ${CONNECTIONS} connections`, rounds),
    ...loadFigures(`Bare Fastify, ${CONNECTIONS} connections`, bareRounds),
    toFigure('Retrieval rate relative to bare Fastify', '', rateRatios(rounds, bareRounds)),
    toFigure('Cost of a retrieval, processor time', 'µs', cpu(rounds)),
    toFigure('Cost of a request to bare Fastify, processor time', 'µs', cpu(bareRounds)),
    toFigure('Cost of a retrieval, disk', 'B', [await measureDisk(vault)]),
    toFigure(
      'Retrieval at half of full load, p99',
      'ms',
      halfLoads.map(({ p99Ms }) => p99Ms),
    ),
  ];
}

export function loadFigures(label: string, loads: readonly LoadResult[]): Figure[] {
  const figure = (measure: string, unit: string, of: (load: LoadResult) => number): Figure =>
    toFigure(`${label}, ${measure}`, unit, loads.map(of));
  return [
    figure('rate', '/s', ({ perSecond }) => perSecond),
    figure('p50', 'ms', ({ p50Ms }) => p50Ms),
    figure('p99', 'ms', ({ p99Ms }) => p99Ms),
  ];
}

async function measureHalfLoad(
  { plan, generator }: Stage,
  vault: BenchVault,
  perSecond: number,
): Promise<LoadResult[]> {
  const before = await countEntries(vault);
  const loads: LoadResult[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const pace = { connections: CONNECTIONS, perSecond, seconds: plan.halfLoadSeconds };
    loads.push(await generator.run({ kind: 'paced', target: vault.target, ...pace }));
  }
  const answered = loads.reduce((sum, load) => sum + load.answered, 0);
  const added = (await countEntries(vault)) - before;
  if (added !== answered) throw new Error(`the log grew by ${added} entries for ${answered} retrievals`);
  return loads;
}

/**
 * Bytes of an entry and its lease: the file's growth since the fixture, which wrote entries alone. Removes the vault.
 */
async function measureDisk(vault: BenchVault): Promise<number> {
  const entries = (await countEntries(vault)) - SMALL.entries;
  await vault.service.stop();
  const bytes = bytesOnDisk(vault.service.dataDir) - vault.filledBytes;
  await removeVault(vault);
  return bytes / entries;
}
