// Start and rest: from starting the launcher that `npm start` runs to the first 200 of the health check, on an empty directory;
// and what the service holds in memory when nothing has happened for two seconds.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../test/kit/client.ts';
import { type Scope, temporaryFolder } from '../test/kit/folder.ts';
import { median, residentMiB } from './measuring.ts';
import { startService } from './program.ts';
import type { Say } from './report.ts';

const REST_MS = 2000;

export interface StartFigures {
  readonly readyMs: number;
  readonly restMiB: number;
}

export async function measureStart(scope: Scope, say: Say, starts: number): Promise<StartFigures> {
  const times: number[] = [];
  const sizes: number[] = [];
  for (let number = 1; number <= starts; number++) {
    const dataDir = join(temporaryFolder(scope), 'data');
    const startedAt = performance.now();
    const service = await startService(scope, dataDir);
    const { status, text } = await createClient(service.address, null).get('/api/v1/health');
    const readyMs = performance.now() - startedAt;
    if (status !== 200) throw new Error(`the health check was answered ${status}: ${text}`);
    await sleep(REST_MS);
    const restMiB = residentMiB(service.pid);
    await service.stop();
    times.push(readyMs);
    sizes.push(restMiB);
    say(`Start: ${number} of ${starts}: ready in ${readyMs.toFixed(0)} ms, ${restMiB.toFixed(1)} MiB at rest`);
  }
  return { readyMs: median(times), restMiB: median(sizes) };
}
