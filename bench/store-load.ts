// Stores: new credentials, one after the other, by the administrator.

import { VALUE } from './answer.ts';
import { assertAnswered } from './connection.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { benchPath } from './targets.ts';
import { runWorkers } from './workers.ts';

export function runStores({
  target,
  adminToken,
  first,
  connections,
  amount,
}: LoadJob & { kind: 'stores' }): Promise<LoadResult> {
  return runWorkers(target.address, connections, amount, async (connection, number) => {
    const body = { path: benchPath(first + number), value: VALUE };
    assertAnswered(await connection.send('POST', '/api/v1/credentials', adminToken, body), 201);
  });
}
