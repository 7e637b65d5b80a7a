// Several nodes on one PostgreSQL that syncs as one in production does.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAddress } from '../src/store/postgres/database-url.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { type Scope, temporaryDirectory } from '../test/kit/directory.ts';
import { createPostgres } from '../test/kit/postgres.ts';
import type { PostgresServer } from '../test/kit/postmaster.ts';
import { fillStore } from './fixtures.ts';
import { processorSeconds } from './measurement.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Stage } from './types.ts';
import { SMALL } from './vault.ts';

// SOURCE: postgresql.org/docs/18/runtime-config-resource.html for a machine with a GiB to spare; the rest is the
// default of 18.
const PRODUCTION = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
};

export interface PostgresCluster {
  readonly server: PostgresServer;
  readonly nodes: readonly ServiceProgram[];
}

/** A database without a vault. */
export async function startDatabase(scope: Scope) {
  const server = await createPostgres(PRODUCTION);
  scope.after(() => server.end());
  return { server, ...prepareNodes(scope, server.url()) };
}

export async function startCluster({ scope }: Stage, count: number): Promise<PostgresCluster> {
  const { server, rootKeyFile, startNode } = await startDatabase(scope);
  // The first start creates the vault.
  await (await startNode(1)).stop();
  await fillStore(await PostgresStore.open(parseAddress(server.url())), rootKeyFile, SMALL);
  await server.query('VACUUM ANALYZE');
  const nodes: ServiceProgram[] = [];
  for (let number = 1; number <= count; number++) nodes.push(await startNode(number));
  return { server, nodes };
}

/** Starts nodes on one database, with one root key and a data directory each. */
export function prepareNodes(scope: Scope, url: string) {
  const directory = temporaryDirectory(scope);
  const [urlFile, rootKeyFile] = [join(directory, 'database.url'), join(directory, 'root.key')];
  writeFileSync(urlFile, url, { mode: 0o600 });
  const flags = ['--database-file', urlFile, '--root-key-file', rootKeyFile, '--log-level', 'silent'];
  const startNode = (number: number) => startService(scope, join(directory, `node-${number}`), flags);
  return { rootKeyFile, startNode };
}

/** Processor time of all processes of the database, in seconds. */
export async function databaseSeconds(server: PostgresServer): Promise<number> {
  const rows = await server.query('SELECT pid FROM pg_stat_activity');
  return rows.reduce((sum, row) => sum + processorSeconds(Number(row['pid'])), processorSeconds(server.pid));
}

/** Bytes that the database has written to its write-ahead log. */
export async function walBytes(server: PostgresServer): Promise<number> {
  const [row = {}] = await server.query("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes");
  return Number(row['bytes']);
}
