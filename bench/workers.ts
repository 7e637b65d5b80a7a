// A closed loop of our own, for what is more than one request: each connection begins the next task when it has ended one.

import { type Connection, withConnections } from './connection.ts';
import type { LoadResult } from './loads.ts';
import { Stopwatch } from './timer.ts';

/** Does the tasks 0 to `amount` − 1, as many at a time as there are connections. */
export function runWorkers(
  address: string,
  connections: number,
  amount: number,
  task: (connection: Connection, number: number) => Promise<void>,
): Promise<LoadResult> {
  const watch = new Stopwatch();
  let next = 0;
  const work = async (connection: Connection): Promise<void> => {
    while (next < amount) {
      const number = next++;
      const startedAt = performance.now();
      await task(connection, number);
      watch.answered(performance.now() - startedAt);
    }
  };
  return withConnections(address, connections, async (opened) => {
    await Promise.all(opened.map(work));
    return watch.result();
  });
}
