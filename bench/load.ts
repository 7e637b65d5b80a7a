// The load generator, in a process of its own. It takes a job a message and answers what it saw.
// Its limits: it is one thread and shares the cores with what it measures. Where it is autocannon it parses answers in JavaScript,
// and takes about a core itself under full load of a fast server.

import { runAutocannon } from './autocannon-load.ts';
import { findWrk } from './generator.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { runLogins } from './login-load.ts';
import { runPaced } from './paced-load.ts';
import { runStores } from './store-load.ts';
import { runWrk } from './wrk-load.ts';

const wrk = findWrk();

function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'full':
      return wrk === null ? runAutocannon(job) : runWrk(wrk, job);
    case 'paced':
      return runPaced(job);
    case 'logins':
      return runLogins(job);
    case 'stores':
      return runStores(job);
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
