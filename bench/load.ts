// The load generator, in a process of its own. It takes a job a message and answers what it saw.
// Its limits: it is one thread, parses answers in JavaScript and shares the cores with what it measures, so that it takes about
// a core itself under full load.

import { runFull } from './fullload.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { runLogins } from './loginload.ts';
import { runPaced } from './pacedload.ts';
import { runStores } from './storeload.ts';

function run(job: LoadJob): Promise<LoadResult> {
  switch (job.kind) {
    case 'full':
      return runFull(job);
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
