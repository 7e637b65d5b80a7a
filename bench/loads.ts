// The loads of the generator: closed loops, in which each connection sends its next request when it has its response,
// and an open loop.

import { sign } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { benchAgent, benchKey, benchPath, sampleRetrievals, VALUE } from './targets.ts';
import { Timer } from './timer.ts';
import type { LoadJob, LoadResult, LoginJob, PacedJob, RetrievalJob, StoreJob, UseJob } from './types.ts';

async function withConnections<T>(
  { target, connections }: LoadJob,
  work: (opened: readonly Connection[]) => Promise<T>,
): Promise<T> {
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(target.address)));
  try {
    return await work(opened);
  } finally {
    for (const connection of opened) connection.close();
  }
}

/** Runs the tasks 0 to `amount` − 1, one at a time on each connection. */
function runClosedLoop(
  job: Exclude<LoadJob, PacedJob>,
  task: (connection: Connection, number: number) => Promise<unknown>,
): Promise<LoadResult> {
  const timer = new Timer();
  let next = 0;
  const work = async (connection: Connection): Promise<void> => {
    while (next < job.amount) {
      const number = next++;
      const startedAt = performance.now();
      await task(connection, number);
      timer.record(performance.now() - startedAt);
    }
  };
  return withConnections(job, async (opened) => {
    await Promise.all(opened.map(work));
    return timer.result();
  });
}

export function runRetrievals(job: RetrievalJob): Promise<LoadResult> {
  const samples = sampleRetrievals(job.target, job.amount);
  return runClosedLoop(job, (connection, number) => {
    const { path = '', token = '' } = samples[number % samples.length] ?? {};
    return connection.request(path, token, 200);
  });
}

/** The figure includes the agent's signatures, made on the cores that the service uses too. */
export function runLogins(job: LoginJob): Promise<LoadResult> {
  const keys = Array.from({ length: job.target.agents }, (_, index) => benchKey(index));
  return runClosedLoop(job, async (connection, number) => {
    const index = number % keys.length;
    const agent_name = benchAgent(index);
    const challenge = await connection.request('/auth/challenge', null, 200, { agent_name });
    const { challenge_id, nonce } = JSON.parse(challenge).data;
    const signature = sign(null, Buffer.from(nonce, 'base64'), keys[index] ?? benchKey(index)).toString('base64');
    await connection.request('/auth/verify', null, 200, { challenge_id, agent_name, signature });
  });
}

export function runStores(job: StoreJob): Promise<LoadResult> {
  return runClosedLoop(job, (connection, number) =>
    connection.request('/api/v1/credentials', job.adminToken, 201, {
      path: benchPath(job.first + number),
      value: VALUE,
    }),
  );
}

export function runUses(job: UseJob): Promise<LoadResult> {
  return runClosedLoop(job, (connection) => connection.request('/api/v1/use', job.token, 200, job.call));
}

/**
 * Each retrieval is due at a time fixed in advance, and its time counts from then, so that waiting for a connection or
 * for the generator counts too.
 */
export function runPaced(job: PacedJob): Promise<LoadResult> {
  const total = Math.round(job.perSecond * job.seconds);
  const samples = sampleRetrievals(job.target, total);
  return withConnections(job, async (opened) => {
    const timer = new Timer();
    const free = [...opened];
    const sent: Promise<void>[] = [];
    const startedAt = performance.now();
    const dueAt = (number: number): number => startedAt + (number * 1000) / job.perSecond;

    const sendDue = (): void => {
      while (sent.length < total && dueAt(sent.length) <= performance.now()) {
        const connection = free.shift();
        if (connection === undefined) return;
        sent.push(retrieve(connection, sent.length));
      }
    };
    const retrieve = async (connection: Connection, number: number): Promise<void> => {
      const { path = '', token = '' } = samples[number % samples.length] ?? {};
      await connection.request(path, token, 200);
      timer.record(performance.now() - dueAt(number));
      free.push(connection);
      sendDue();
    };
    // A millisecond is the resolution of a timer; all requests that became due meanwhile are sent together.
    while (sent.length < total) {
      sendDue();
      await sleep(1);
    }
    await Promise.all(sent);
    return timer.result();
  });
}
