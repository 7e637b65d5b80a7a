// A vault with many credentials, policies and entries, compared with a small one.

import { compare, rateRatios, retrievals } from './compare.ts';
import { toFigure, watchMemory } from './measurement.ts';
import { CONNECTIONS, loadFigures } from './retrieval.ts';
import { timeStart } from './start.ts';
import type { Figure, Stage } from './types.ts';
import { type BenchVault, createVault, openVault, removeVault, SMALL, startVault } from './vault.ts';

export async function measureLarge(stage: Stage): Promise<Figure[]> {
  const { plan } = stage;
  const sizes = { ...SMALL, ...plan.large };
  const dataDir = await createVault(stage, sizes);
  const starts: number[] = [];
  for (let number = 0; number < plan.starts; number++) starts.push((await timeStart(stage, dataDir)).readyMs);
  const large = await openVault(stage, dataDir, sizes);
  const small = await startVault(stage, SMALL);
  const side = (name: string, { service, target }: BenchVault) => retrievals(stage, name, service, target, CONNECTIONS);
  const maximumMiB = watchMemory(large.service.pid);
  const [smallRounds = [], rounds = []] = await compare(stage, [side('small', small), side('large', large)], {
    warmUp: plan.warmUpRequests,
    seconds: plan.largeSeconds,
  });
  const memoryMiB = maximumMiB();
  await removeVault(small);
  await removeVault(large);
  return [
    toFigure('Start to ready, large vault', 'ms', starts),
    toFigure('Memory under full load, large vault', 'MiB', [memoryMiB]),
    ...loadFigures('Retrieval, large vault', rounds),
    toFigure('Retrieval rate, large vault relative to small', '', rateRatios(rounds, smallRounds)),
  ];
}
