// Starts the overload process and reads its results.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Scope } from '../kit/directory.ts';
import type { FloodJob, FloodResult } from './overload-load.ts';

/** Resolves when its connections are being opened. */
export async function startFlood(scope: Scope, job: FloodJob): Promise<{ end(): Promise<FloodResult> }> {
  const file = join(import.meta.dirname, 'overload-load.ts');
  const child = spawn(process.execPath, [file, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  scope.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  const endedEarly = once(child, 'close').then(() => Promise.reject(new Error('the flood ended before it began')));
  await Promise.race([once(child.stdout, 'data'), endedEarly]);
  return {
    async end() {
      child.kill('SIGTERM');
      await once(child, 'close');
      return JSON.parse(output.slice(output.indexOf('{'))) as FloodResult;
    },
  };
}
