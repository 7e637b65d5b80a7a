// Full load by autocannon: a fixed number of connections kept busy (closed loop), so that it waits where a server is slow and
// sees no queue of strangers.

import autocannon from 'autocannon';
import type { FullJob, LoadResult } from './loads.ts';
import { pickRetrievals } from './sampling.ts';
import { Stopwatch } from './timer.ts';

export async function runAutocannon({ target, connections, amount }: FullJob): Promise<LoadResult> {
  const watch = new Stopwatch();
  // Each connection goes round requests of its own.
  const picked = pickRetrievals(target, { amount, connections }).map(({ path, token }) => ({
    path,
    headers: { authorization: `Bearer ${token}` },
  }));
  const each = picked.length / connections;
  let clients = 0;
  const run = autocannon({
    url: target.address,
    connections,
    amount,
    setupClient: (client) => {
      client.setRequests(picked.slice(clients * each, (clients + 1) * each));
      clients += 1;
    },
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
