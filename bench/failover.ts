// A failover of PostgreSQL: the primary is killed and its synchronous standby promoted while a client retrieves from
// each of two nodes.

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../test/kit/client.ts';
import { withScope } from '../test/kit/directory.ts';
import { createPostgres } from '../test/kit/postgres.ts';
import { startStandby } from '../test/kit/standby.ts';
import { toFigure } from './measurement.ts';
import { prepareNodes } from './postgres-cluster.ts';
import type { ServiceProgram } from './program.ts';
import type { Figure, Stage } from './types.ts';

const RETRY_INTERVAL_MS = 10;
const PATH = 'bench/failover';
/** Time without a primary; long enough for each node to lose its connections. */
const OUTAGE_MS = 1500;

export async function measureFailover({ plan, say }: Stage): Promise<Figure[]> {
  const times: number[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const time = await failOver();
    say(`Failover: round ${round} of ${plan.rounds}: ${Math.round(time)} ms`);
    times.push(time);
  }
  return [toFigure('Failover, from promotion to the first value', 'ms', times)];
}

/** Milliseconds from the promotion to the first value of the node that returns one last. */
function failOver(): Promise<number> {
  return withScope(async (scope) => {
    const primary = await createPostgres();
    scope.after(() => primary.end());
    const standby = await startStandby(scope, primary, { name: 'standby', isSynchronous: true });
    const url = primary.url().replace(/@[^/]+/, `@127.0.0.1:${primary.port},127.0.0.1:${standby.server.port}`);
    const { startNode } = prepareNodes(scope, url);
    const [one, two] = [await startNode(1), await startNode(2)];
    await createClient(one.address, one.adminToken).post('/api/v1/credentials', { path: PATH, value: 'v' });
    await primary.kill();
    const firstValues = [one, two].map(firstValueAt);
    await sleep(OUTAGE_MS);
    await standby.promote();
    const promotedAt = performance.now();
    return Math.max(0, Math.max(...(await Promise.all(firstValues))) - promotedAt);
  });
}

async function firstValueAt({ address, adminToken }: ServiceProgram): Promise<number> {
  const client = createClient(address, adminToken);
  for (;;) {
    const { status } = await client.get(`/api/v1/credentials/${PATH}`);
    if (status === 200) return performance.now();
    await sleep(RETRY_INTERVAL_MS);
  }
}
