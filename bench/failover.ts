// What callers see of a failover: the primary is killed, its synchronous standby is promoted, and each of two nodes is asked all the
// time. The database's own outage ends with the promotion; the rest is the nodes'.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../test/kit/client.ts';
import { temporaryFolder } from '../test/kit/directory.ts';
import { createPostgres } from '../test/kit/postgres.ts';
import { startStandby } from '../test/kit/standby.ts';
import { openScope } from './cleanup.ts';
import { sumUp } from './measure.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Findings, Stage } from './types.ts';

const ASKED_EVERY_MS = 10;
const PATH = '/api/v1/credentials/bench/failover';
/** Long enough for each node to notice that it is alone. */
const ALONE_MS = 1500;

interface Outage {
  readonly databaseMs: number;
  /** Of the node that came back last, behind the database's. */
  readonly nodesMs: number;
}

export async function measureFailover({ plan, say }: Stage): Promise<Findings> {
  const outages: Outage[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const outage = await failOver();
    say(`Failover: round ${round} of ${plan.rounds}: ${Math.round(outage.nodesMs)} ms behind the database`);
    outages.push(outage);
  }
  const rounds = plan.rounds;
  return {
    figures: [
      {
        name: 'Failover: what callers wait for behind the database',
        unit: 'ms',
        rounds,
        ...sumUp(outages.map(({ nodesMs }) => nodesMs)),
        required: { kind: 'at most', limit: 5000 },
      },
      {
        name: 'Failover: the database itself, from its end to its promotion',
        unit: 'ms',
        rounds,
        ...sumUp(outages.map(({ databaseMs }) => databaseMs)),
        required: null,
      },
    ],
    curves: [],
    notes: [],
  };
}

async function failOver(): Promise<Outage> {
  const scope = openScope();
  try {
    const primary = await createPostgres();
    scope.after(() => primary.end());
    const standby = await startStandby(scope, primary, { name: 'standby', isSynchronous: true });
    const folder = temporaryFolder(scope);
    const urlFile = join(folder, 'database.url');
    const url = primary.url().replace(/@[^/]+/, `@127.0.0.1:${primary.port},127.0.0.1:${standby.server.port}`);
    writeFileSync(urlFile, url, { mode: 0o600 });
    const flags = ['--database-file', urlFile, '--root-key-file', join(folder, 'root.key'), '--log-level', 'silent'];
    const one = await startService(scope, join(folder, 'one'), flags);
    const two = await startService(scope, join(folder, 'two'), flags);
    await createClient(one.address, one.adminToken).post('/api/v1/credentials', { path: 'bench/failover', value: 'v' });
    const diedAt = performance.now();
    await primary.kill();
    const back = [one, two].map(firstValueAfter);
    await sleep(ALONE_MS);
    await standby.promote();
    const promotedAt = performance.now();
    const backAt = Math.max(...(await Promise.all(back)));
    return { databaseMs: promotedAt - diedAt, nodesMs: Math.max(0, backAt - promotedAt) };
  } finally {
    await scope.end();
  }
}

async function firstValueAfter({ address, adminToken }: ServiceProgram): Promise<number> {
  const client = createClient(address, adminToken);
  for (;;) {
    const { status } = await client.get(PATH);
    if (status === 200) return performance.now();
    await sleep(ASKED_EVERY_MS);
  }
}
