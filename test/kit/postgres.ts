/**
 * A separate PostgreSQL for a test that kills it, stops it, or needs other settings; it takes about 0.7 s. A test that
 * only needs a database calls `newDatabase` of database.ts.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { closeUsers, type Scope } from './directory.ts';
import { PostgresServer, type Settings, SUPERUSER } from './postmaster.ts';
import { chownToServer, runInitdb } from './programs.ts';

// WHY without fsync: the system keeps what a killed process wrote, and no test simulates a loss of power here.
const SETTINGS: Settings = {
  listen_addresses: '127.0.0.1',
  max_connections: '200',
  shared_buffers: '32MB',
  fsync: 'off',
  full_page_writes: 'off',
  jit: 'off',
  max_wal_size: '256MB',
  wal_keep_size: '128MB', // for a standby that was away
  dynamic_shared_memory_type: 'mmap', // in its directory, so that a kill leaves nothing in the system
};

async function initialize(directory: string, password: string, tell: (pid: number) => void): Promise<void> {
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  chownToServer(passwordFile);
  // WHY these: PostgreSQL contains them, so that no locale has to be installed.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const access = ['--username', SUPERUSER, '--pwfile', passwordFile, '--auth', 'scram-sha-256'];
  // Many tests connect and few test passwords: PostgreSQL's 4,096 iterations cost milliseconds per connection on both
  // sides.
  const passwords = ['--set', 'scram_iterations=1'];
  const data = ['--pgdata', join(directory, 'data'), '--no-sync'];
  await runInitdb(directory, [...data, ...access, ...passwords, ...locale], tell);
  rmSync(passwordFile);
}

/** The caller must end it. */
export function createPostgres(settings: Settings = {}): Promise<PostgresServer> {
  return PostgresServer.create({ ...SETTINGS, ...settings }, initialize);
}

/** A separate server that the test may kill; it ends with its scope. */
export async function startPostgres(
  scope: Scope,
  { settings }: { readonly settings?: Settings } = {},
): Promise<PostgresServer> {
  const server = await createPostgres(settings);
  scope.after(async () => {
    await closeUsers((place) => [`:${server.port}/`, `:${server.port},`].some((part) => place.includes(part)));
    await server.end();
  });
  return server;
}
