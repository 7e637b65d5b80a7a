// Full load by autocannon: a fixed number of connections kept busy (closed loop), so that it waits where a server is slow and
// sees no queue of strangers.

import autocannon from 'autocannon';
import type { LoadJob, LoadResult, Target } from './loads.ts';
import { Stopwatch } from './stopwatch.ts';
import { benchPath, benchToken, randomBelow } from './subjects.ts';

/** Each connection goes round requests of its own, picked at random: so many in all that few come twice, as long as that is cheap. */
const MOST_PICKED = 32_000;

function pick({ credentials, agents }: Target, count: number): autocannon.Request[] {
  return Array.from({ length: count }, () => ({
    path: `/api/v1/credentials/${benchPath(randomBelow(credentials))}`,
    headers: { authorization: `Bearer ${benchToken(randomBelow(agents))}` },
  }));
}

export async function runFull({ target, connections, amount }: LoadJob & { kind: 'full' }): Promise<LoadResult> {
  const watch = new Stopwatch();
  const each = Math.ceil(Math.min(amount, MOST_PICKED) / connections);
  const run = autocannon({
    url: target.address,
    connections,
    amount,
    setupClient: (client) => client.setRequests(pick(target, each)),
    sampleInt: 100,
  });
  // WHY not autocannon's own rate and percentiles: it counts its preparations, and rounds to milliseconds.
  // Each connection's first request is timed from before the others were prepared: that time is the generator's.
  const begun = new WeakSet<autocannon.Client>();
  run.on('response', (client, _status, _bytes, milliseconds) => {
    watch.answered(begun.has(client) ? milliseconds : null);
    begun.add(client);
  });
  const { statusCodeStats, errors } = await run;
  if (errors > 0 || statusCodeStats['200']?.count !== amount) {
    throw new Error(`of ${amount} requests: ${JSON.stringify(statusCodeStats)} by status, ${errors} errors`);
  }
  return watch.result();
}
