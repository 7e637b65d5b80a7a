// Audit queries, one at a time: what an administrator waits for. The kinds take turns.

import type { BenchVault } from './bench-vault.ts';
import { assertAnswered, type Connection, withConnections } from './connection.ts';
import { sumUp } from './measure.ts';
import { benchAgent } from './targets.ts';
import type { Measure, Stage } from './types.ts';

export interface QueryMeasure extends Measure {
  readonly name: string;
  readonly rounds: number;
}

/** A kind that has taken so long is asked no more once it was asked `ENOUGH` times. */
const LONG_MS = 3000;
const ENOUGH = 3;

interface Kind {
  readonly name: string;
  readonly query: string;
  readonly times: number[];
}

export async function measureQueries({ plan, say }: Stage, vault: BenchVault): Promise<QueryMeasure[]> {
  const { address, adminToken } = vault.program;
  return withConnections(address, 1, async ([connection]) => {
    if (connection === undefined) throw new Error('there is no connection');
    const kinds = await chooseKinds(connection, adminToken);
    for (let round = 0; round < plan.queries; round++) {
      for (const { query, times } of kinds) {
        const spent = times.reduce((sum, time) => sum + time, 0);
        if (times.length >= ENOUGH && spent > LONG_MS) continue;
        const startedAt = performance.now();
        assertAnswered(await connection.send('GET', `/api/v1/audit?${query}`, adminToken), 200);
        times.push(performance.now() - startedAt);
      }
    }
    const measured = kinds.map(({ name, times }) => ({ name, rounds: times.length, ...sumUp(times) }));
    say(`Audit queries: ${measured.map(({ name, value }) => `${name} ${value.toFixed(1)} ms`).join(', ')}`);
    return measured;
  });
}

async function chooseKinds(connection: Connection, adminToken: string): Promise<Kind[]> {
  const ask = async (query: string) => {
    const answered = await connection.send('GET', `/api/v1/audit?${query}`, adminToken);
    assertAnswered(answered, 200);
    return JSON.parse(answered.body);
  };
  const { total } = (await ask('limit=1')).meta;
  const middle = Math.floor(total / 2);
  // Entries of a fixture share their times by the thousand.
  const at: string = (await ask(`limit=1&offset=${middle}`)).data[0].timestamp;
  const kind = (name: string, query: string): Kind => ({ name, query: `limit=100&${query}`, times: [] });
  return [
    kind('newest page', ''),
    kind('page at a deep offset', `offset=${Math.floor(total * 0.9)}`),
    kind('since and until', `since=${at}&until=${at}`),
    kind('by agent', `agent=${benchAgent(0)}`),
    kind('by resource', 'resource=bench/team-11/service-1*'),
  ];
}
