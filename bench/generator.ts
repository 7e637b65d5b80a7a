// The load generator: which one it is, and the handle of its process.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../test/kit/directory.ts';
import type { LoadJob, LoadResult } from './types.ts';

export interface Generator {
  run(job: LoadJob): Promise<LoadResult>;
}

/** The file of wrk; null where it is not installed. `path` is as in the environment. */
export function findWrk(path = process.env['PATH'] ?? ''): string | null {
  const files = path.split(delimiter).map((directory) => join(directory, 'wrk'));
  return files.find((file) => existsSync(file)) ?? null;
}

export function describeGenerator(wrk = findWrk()): string {
  return wrk === null ? 'bench/loads.ts (wrk is not installed)' : 'wrk';
}

export function startGenerator(scope: Scope): Generator {
  const child = fork(fileURLToPath(import.meta.resolve('./load.ts')), { execArgv: [] });
  const exited = once(child, 'exit');
  scope.after(() => {
    child.kill('SIGTERM');
    return exited;
  });
  return {
    async run(job) {
      child.send(job);
      const [result] = await Promise.race([
        once(child, 'message'),
        exited.then(() => Promise.reject(new Error('the load generator exited'))),
      ]);
      return result as LoadResult;
    },
  };
}
