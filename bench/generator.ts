// The handle of the load generator's process.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Scope } from '../test/kit/folder.ts';
import type { LoadJob, LoadResult } from './load.ts';

export interface Generator {
  run(job: LoadJob): Promise<LoadResult>;
}

export function startGenerator(scope: Scope): Generator {
  const child = fork(join(import.meta.dirname, 'load.ts'), { execArgv: [] });
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
