// Start and rest: from starting the launcher that `npm start` runs to the first 200 of the health check; and what the service
// holds in memory when nothing has happened for a while.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../test/kit/client.ts';
import { temporaryFolder } from '../test/kit/directory.ts';
import { residentMiB, sumUp } from './measure.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Findings, Stage } from './types.ts';

/** Starts the service and stops it again. `work` is done in between. */
export async function timeStart(
  { scope }: Stage,
  dataDir: string,
  work: (service: ServiceProgram) => Promise<void> = async () => undefined,
): Promise<number> {
  const startedAt = performance.now();
  const service = await startService(scope, dataDir);
  const { status, text } = await createClient(service.address, null).get('/api/v1/health');
  const readyMs = performance.now() - startedAt;
  if (status !== 200) throw new Error(`the health check was answered ${status}: ${text}`);
  await work(service);
  await service.stop();
  return readyMs;
}

export async function measureStart(stage: Stage): Promise<Findings> {
  const { scope, say, plan } = stage;
  const times: number[] = [];
  const sizes: number[] = [];
  for (let number = 1; number <= plan.starts; number++) {
    const readyMs = await timeStart(stage, join(temporaryFolder(scope), 'data'), async ({ pid }) => {
      await sleep(plan.restMs);
      sizes.push(residentMiB(pid));
    });
    times.push(readyMs);
    say(
      `Start: ${number} of ${plan.starts}: ready in ${readyMs.toFixed(0)} ms, ${sizes.at(-1)?.toFixed(1)} MiB at rest`,
    );
  }
  const rounds = plan.starts;
  return {
    figures: [
      {
        name: 'Start to ready, empty directory',
        unit: 'ms',
        rounds,
        ...sumUp(times),
        required: { kind: 'below', limit: 1000 },
      },
      { name: 'Memory at rest', unit: 'MiB', rounds, ...sumUp(sizes), required: { kind: 'below', limit: 120 } },
    ],
    curves: [],
    notes: [],
  };
}
