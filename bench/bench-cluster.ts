// Several nodes of the bench on a PostgreSQL of its own, which syncs as one in production does.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAddress } from '../src/store/postgres/address.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { temporaryFolder } from '../test/kit/directory.ts';
import { createPostgres } from '../test/kit/postgres.ts';
import type { PostgresServer } from '../test/kit/postmaster.ts';
import { growStore, NOTHING, type Sizes } from './fixtures.ts';
import type { Target } from './loads.ts';
import { processorSeconds } from './measure.ts';
import { type ServiceProgram, startService } from './program.ts';
import type { Stage } from './types.ts';

// SOURCE: postgresql.org/docs/18/runtime-config-resource.html for a machine with a GiB to spare; the rest is the default of 18.
const PRODUCTION = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  shared_preload_libraries: 'pg_stat_statements',
  track_wal_io_timing: 'on',
};

export class BenchCluster {
  readonly server: PostgresServer;
  readonly nodes: readonly ServiceProgram[];
  readonly #sizes: Sizes;

  private constructor(server: PostgresServer, nodes: readonly ServiceProgram[], sizes: Sizes) {
    this.server = server;
    this.nodes = nodes;
    this.#sizes = sizes;
  }

  static async start({ scope, say }: Stage, count: number, sizes: Sizes): Promise<BenchCluster> {
    const server = await createPostgres(PRODUCTION);
    scope.after(() => server.end());
    await server.query('CREATE EXTENSION pg_stat_statements');
    const folder = temporaryFolder(scope);
    const urlFile = join(folder, 'database.url');
    writeFileSync(urlFile, server.url(), { mode: 0o600 });
    const rootKeyFile = join(folder, 'root.key');
    const flags = ['--database-file', urlFile, '--root-key-file', rootKeyFile, '--log-level', 'error'];
    // The first start makes the vault.
    await (await startService(scope, join(folder, 'node-1'), flags)).stop();
    await growStore(await PostgresStore.open(parseAddress(server.url())), rootKeyFile, NOTHING, sizes, say);
    await server.query('VACUUM ANALYZE');
    const nodes: ServiceProgram[] = [];
    for (let node = 1; node <= count; node++) {
      nodes.push(await startService(scope, join(folder, `node-${node}`), flags));
    }
    return new BenchCluster(server, nodes, sizes);
  }

  targetOf(node: ServiceProgram): Target {
    return { address: node.address, credentials: this.#sizes.credentials, agents: this.#sizes.agents };
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop();
    await this.server.end();
  }

  /** Of all its processes that live, in seconds. */
  async databaseSeconds(): Promise<number> {
    const rows = await this.server.query('SELECT pid FROM pg_stat_activity');
    return rows.reduce((sum, row) => sum + secondsOf(Number(row['pid'])), secondsOf(this.server.pid));
  }
}

/** One that has ended meanwhile counts nothing. */
function secondsOf(pid: number): number {
  try {
    return processorSeconds(pid) ?? Number.NaN;
  } catch {
    return 0;
  }
}
