// The load generator: which one it is, and the handle of its process.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Scope } from '../test/kit/folder.ts';
import type { LoadJob, LoadResult } from './loads.ts';

export interface Generator {
  run(job: LoadJob): Promise<LoadResult>;
}

const OTHERS = ['oha', 'wrk'];

/** Which generator the figures come from, and why. `path` is as in the environment. */
export function describeGenerator(path: string, isThere: (file: string) => boolean = existsSync): string {
  const found = OTHERS.filter((name) => path.split(delimiter).some((folder) => isThere(join(folder, name))));
  const why =
    found.length === 0
      ? `neither ${OTHERS.join(' nor ')} is installed`
      : `${found.join(' and ')} is installed, but the bench knows to read autocannon alone`;
  return `autocannon (${why}); half load, logins and stores by a generator of our own`;
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
