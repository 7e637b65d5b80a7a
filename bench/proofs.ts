// Receipts and consistency proofs of a long log, as an auditor gets them: over HTTP, one request at a time, at random
// places. Each is verified, which takes no part in its time.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseVerifierKey } from '../src/crypto/checkpoint.ts';
import { decodeHash, isConsistent, type TreeHead } from '../src/crypto/tree.ts';
import { parseAddress } from '../src/store/postgres/database-url.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import { temporaryDirectory } from '../test/kit/directory.ts';
import { openReceipt } from '../test/kit/receipts.ts';
import { Connection } from './connection.ts';
import { insertPostgres, insertSqlite, lengthenLog } from './long-log.ts';
import { percentile, processorSeconds, toFigure } from './measurement.ts';
import type { Plan } from './plan.ts';
import { databaseSeconds, startDatabase } from './postgres-cluster.ts';
import { type ServiceProgram, startService } from './program.ts';
import { randomBelow } from './targets.ts';
import type { Figure, Stage } from './types.ts';

const WARM_UP = 100;

export async function measureProofs({ scope, plan, say }: Stage): Promise<Figure[]> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  // The first start creates the vault.
  await (await startService(scope, dataDir)).stop();
  const file = join(dataDir, 'leasehold.db');
  const { entries } = plan.large;
  say(`Writing a log of ${entries} entries`);
  await lengthenLog(new SqliteStore(file), join(dataDir, 'root.key'), entries, insertSqlite(file));
  const service = await startService(scope, dataDir);
  const cost = async () => processorSeconds(service.pid);
  const figures = await measureService({ plan, say }, service, '', cost);
  await service.stop();
  rmSync(dataDir, { recursive: true });
  return figures;
}

export async function measureProofsOnPostgres({ scope, plan, say }: Stage): Promise<Figure[]> {
  const { server, rootKeyFile, startNode } = await startDatabase(scope);
  await (await startNode(1)).stop();
  const entries = plan.large.entries;
  say(`Writing a log of ${entries} entries`);
  const store = await PostgresStore.open(parseAddress(server.url()));
  await lengthenLog(
    store,
    rootKeyFile,
    entries,
    insertPostgres((sql) => server.query(sql)),
  );
  await server.query('VACUUM ANALYZE');
  const node = await startNode(1);
  const cost = async () => processorSeconds(node.pid) + (await databaseSeconds(server));
  const figures = await measureService({ plan, say }, node, ' on PostgreSQL', cost);
  await node.stop();
  await server.end();
  return figures;
}

/** `cost`: the processor time so far of the service, and of the database if it is another process. */
async function measureService(
  { plan, say }: Pick<Stage, 'plan' | 'say'>,
  service: ServiceProgram,
  where: string,
  cost: () => Promise<number>,
): Promise<Figure[]> {
  const connection = await Connection.open(service.address);
  const get = async (path: string) => {
    const startedAt = performance.now();
    const body = await connection.request(`/api/v1/audit/${path}`, service.adminToken, 200);
    const milliseconds = performance.now() - startedAt;
    return { milliseconds, data: JSON.parse(Buffer.from(body, 'latin1').toString()).data };
  };
  const { data: newest } = await get('checkpoint');
  const verifier = parseVerifierKey(newest.verifier_key);
  const receipt = async (): Promise<number> => {
    const seq = 1 + randomBelow(newest.size);
    const { milliseconds, data } = await get(`entries/${seq}/proof`);
    if (verifier === null || openReceipt(data.receipt, verifier)?.seq !== seq) throw new Error('an invalid receipt');
    return milliseconds;
  };
  const consistency = async (): Promise<number> => {
    const from = 1 + randomBelow(newest.size);
    const { milliseconds, data } = await get(`consistency?from=${from}&to=${newest.size}`);
    const [older, newer] = [head(from, data.from_root), head(newest.size, newest.root)];
    if (!isConsistent(older, newer, data.proof.map(toHash))) throw new Error('an invalid consistency proof');
    return milliseconds;
  };
  say(`Proofs of a log of ${newest.size} entries`);
  const figures = [
    ...(await timeRounds(`Receipt${where}`, plan, receipt, cost)),
    ...(await timeRounds(`Consistency proof${where}`, plan, consistency, cost)),
  ];
  connection.close();
  return figures;
}

const toHash = (text: string): string => decodeHash(text) ?? '';
const head = (size: number, root: string): TreeHead => ({ size, root: toHash(root) });

async function timeRounds(
  label: string,
  plan: Plan,
  time: () => Promise<number>,
  cost: () => Promise<number>,
): Promise<Figure[]> {
  for (let number = 0; number < WARM_UP; number++) await time();
  const results: Float64Array[] = [];
  const costs: number[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const before = await cost();
    const times = new Float64Array(plan.proofs);
    for (let number = 0; number < plan.proofs; number++) times[number] = await time();
    results.push(times.sort());
    costs.push((((await cost()) - before) / plan.proofs) * 1000);
  }
  const figure = (measure: string, share: number): Figure =>
    toFigure(
      `${label}, ${measure}`,
      'ms',
      results.map((times) => percentile(times, share)),
    );
  return [
    figure('p50', 0.5),
    figure('p99', 0.99),
    figure('longest', 1),
    toFigure(`${label}, processor time`, 'ms', costs),
  ];
}
