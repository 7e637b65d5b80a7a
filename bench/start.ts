// Start: from the launcher that `npm start` runs to the first 200 of the health check. Memory at rest: some time after
// it.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../test/kit/client.ts';
import { temporaryDirectory } from '../test/kit/directory.ts';
import { residentMiB, toFigure } from './measurement.ts';
import { startService } from './program.ts';
import type { Figure, Stage } from './types.ts';

/** Starts the service, reads its memory after `restMs` and stops it. */
export async function timeStart(
  { scope }: Stage,
  dataDir: string,
  restMs = 0,
): Promise<{ readyMs: number; mib: number }> {
  const startedAt = performance.now();
  const service = await startService(scope, dataDir);
  const { status, text } = await createClient(service.address, null).get('/api/v1/health');
  const readyMs = performance.now() - startedAt;
  if (status !== 200) throw new Error(`the health check returned ${status}: ${text}`);
  await sleep(restMs);
  const mib = residentMiB(service.pid);
  await service.stop();
  return { readyMs, mib };
}

export async function measureStart(stage: Stage): Promise<Figure[]> {
  const starts: { readyMs: number; mib: number }[] = [];
  for (let number = 1; number <= stage.plan.starts; number++) {
    starts.push(await timeStart(stage, join(temporaryDirectory(stage.scope), 'data'), stage.plan.restMs));
  }
  return [
    toFigure(
      'Start to ready, empty directory',
      'ms',
      starts.map(({ readyMs }) => readyMs),
    ),
    toFigure(
      'Memory at rest',
      'MiB',
      starts.map(({ mib }) => mib),
    ),
  ];
}
