// The load generator: autocannon in a process of its own. It takes a job a message and answers what it saw.
// Its limits: it is one thread and parses answers in JavaScript, so that it takes about a core under full load; it keeps a
// fixed number of connections busy, so that it waits where a server is slow (closed loop), and sees no queue of strangers.

import autocannon from 'autocannon';
import { percentile } from './measuring.ts';

export interface LoadJob {
  readonly address: string;
  readonly token: string;
  readonly paths: readonly string[];
  readonly connections: number;
  /** Requests in all, shared out among the connections. */
  readonly amount: number;
}

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** How many answers had which status. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly errors: number;
  /** Share of one core that the generator used itself. */
  readonly busy: number;
}

/** Each connection goes round paths of its own, picked at random. */
const PATHS_PER_CONNECTION = 100;

function pick(paths: readonly string[]): autocannon.Request[] {
  return Array.from({ length: PATHS_PER_CONNECTION }, () => ({
    path: paths[Math.floor(Math.random() * paths.length)] ?? '/',
  }));
}

async function load({ address, token, paths, connections, amount }: LoadJob): Promise<LoadResult> {
  const times: number[] = [];
  let firstAt = 0;
  let lastAt = 0;
  let usedAtFirst = process.cpuUsage();
  const run = autocannon({
    url: address,
    connections,
    amount,
    headers: { authorization: `Bearer ${token}` },
    setupClient: (client) => client.setRequests(pick(paths)),
    sampleInt: 100,
  });
  // WHY not autocannon's own rate and percentiles: it counts its preparations, and rounds to milliseconds.
  run.on('response', (_client, _status, _bytes, milliseconds) => {
    lastAt = performance.now();
    if (times.push(milliseconds) > 1) return;
    firstAt = lastAt;
    usedAtFirst = process.cpuUsage();
  });
  const { statusCodeStats, errors } = await run;
  const { user, system } = process.cpuUsage(usedAtFirst);
  const seconds = (lastAt - firstAt) / 1000;
  times.sort((a, b) => a - b);
  return {
    perSecond: (times.length - 1) / seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    statuses: Object.fromEntries(Object.entries(statusCodeStats).map(([status, { count }]) => [status, count])),
    errors,
    busy: (user + system) / 1e6 / seconds,
  };
}

process.on('message', (job: LoadJob) => {
  load(job).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
