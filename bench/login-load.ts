// Logins: a challenge, its signature and the verify. The generator signs, on the cores that the service has too: what a login
// costs its agent is in the figure.

import { type KeyObject, sign } from 'node:crypto';
import { assertAnswered, type Connection } from './connection.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { benchAgent, benchKey } from './targets.ts';
import { runWorkers } from './workers.ts';

const keys: KeyObject[] = [];

async function logIn(connection: Connection, index: number): Promise<void> {
  const agentName = benchAgent(index);
  const key = keys[index] ?? benchKey(index);
  keys[index] = key;
  const asked = await connection.send('POST', '/auth/challenge', null, { agent_name: agentName });
  assertAnswered(asked, 200);
  const { challenge_id, nonce } = JSON.parse(asked.body).data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
  const proof = { challenge_id, agent_name: agentName, signature };
  assertAnswered(await connection.send('POST', '/auth/verify', null, proof), 200);
}

export function runLogins({ target, connections, amount }: LoadJob & { kind: 'logins' }): Promise<LoadResult> {
  return runWorkers(target.address, connections, amount, (connection, number) =>
    logIn(connection, number % target.agents),
  );
}
