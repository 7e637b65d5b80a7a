// The load generator: which one it is, and the handle of its process.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../test/kit/directory.ts';
import type { LoadJob, LoadResult } from './loads.ts';

export interface Generator {
  run(job: LoadJob): Promise<LoadResult>;
}

/** Where wrk is installed, from which full load comes then; null where it is not. `path` is as in the environment. */
export function findWrk(
  path = process.env['PATH'] ?? '',
  isThere: (file: string) => boolean = existsSync,
): string | null {
  const files = path.split(delimiter).map((folder) => join(folder, 'wrk'));
  return files.find(isThere) ?? null;
}

/** Which generator the figures come from, and why. oha is none: it can't send each request with a token of its own. */
export function describeGenerator(wrk: string | null): string {
  const full = wrk !== null ? 'wrk' : 'autocannon (wrk is not installed)';
  return `${full}; half load, logins and stores by a generator of our own`;
}

export function startGenerator(scope: Scope): Generator {
  const child = fork(fileURLToPath(import.meta.resolve('./load.ts')), { execArgv: [] });
  const ended = once(child, 'exit');
  scope.after(() => {
    child.kill('SIGTERM');
    return ended;
  });
  return {
    async run(job) {
      child.send(job);
      const [result] = await Promise.race([
        once(child, 'message'),
        ended.then(() => Promise.reject(new Error('the load generator ended'))),
      ]);
      return result as LoadResult;
    },
  };
}
