// Retrievals at a set rate (open loop): each is due at a moment that was set before, and its time counts from that moment, so
// that waiting for a connection or for the generator counts too.
// WHY not autocannon's rate: it sends each second's requests at the beginning of that second, as fast as it can.

import { setTimeout as sleep } from 'node:timers/promises';
import { assertAnswered, type Connection, withConnections } from './connection.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { benchPath, benchToken, randomBelow } from './targets.ts';
import { Stopwatch } from './timer.ts';

type PacedJob = LoadJob & { kind: 'paced' };

export function runPaced(job: PacedJob): Promise<LoadResult> {
  return withConnections(job.target.address, job.connections, (connections) => pace(job, connections));
}

async function pace({ target, perSecond, seconds }: PacedJob, connections: readonly Connection[]): Promise<LoadResult> {
  const tokens = Array.from({ length: target.agents }, (_, index) => benchToken(index));
  const watch = new Stopwatch();
  const free = [...connections];
  const total = Math.round(perSecond * seconds);
  const { promise, resolve, reject } = Promise.withResolvers<LoadResult>();
  const startedAt = performance.now();
  const dueAt = (number: number): number => startedAt + (number * 1000) / perSecond;
  let sent = 0;
  let answered = 0;
  let hasFailed = false;

  const sendDue = (): void => {
    for (const now = performance.now(); sent < total && dueAt(sent) <= now; sent++) {
      const connection = free.shift();
      if (connection === undefined) return;
      void ask(connection, dueAt(sent));
    }
  };
  const ask = async (connection: Connection, due: number): Promise<void> => {
    try {
      const path = `/api/v1/credentials/${benchPath(randomBelow(target.credentials))}`;
      assertAnswered(await connection.send('GET', path, tokens[randomBelow(tokens.length)] ?? null), 200);
      watch.answered(performance.now() - due);
      free.push(connection);
      answered += 1;
      if (answered === total) resolve(watch.result());
      else sendDue();
    } catch (error) {
      hasFailed = true;
      reject(error);
    }
  };
  // The finest a timer does; what fell due in between is sent at once.
  while (sent < total && !hasFailed) {
    sendDue();
    await sleep(1);
  }
  return promise;
}
