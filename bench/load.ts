// The process of the load generator: takes a job per message and sends its result.
// It is one thread and shares the cores with the server: a server faster than the generator looks slower than it is.

import { findWrk } from './generator.ts';
import { runLogins, runPaced, runRetrievals, runStores, runUses } from './loads.ts';
import type { LoadJob, LoadResult } from './types.ts';
import { runWrk } from './wrk.ts';

const wrk = findWrk();

function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'retrievals':
      return wrk === null ? runRetrievals(job) : runWrk(wrk, job);
    case 'paced':
      return runPaced(job);
    case 'logins':
      return runLogins(job);
    case 'stores':
      return runStores(job);
    case 'uses':
      return runUses(job);
  }
}

process.on('message', (job: LoadJob) => {
  run(job).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
