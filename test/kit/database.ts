/**
 * A database of its own for each test, on one server for the whole run. Where none was started for the run, this process starts its
 * own with the first database, and ends it when it has nothing left to do.
 */
import { randomBytes } from 'node:crypto';
import type { Scope } from './folder.ts';
import { createPostgres } from './postgres.ts';
import { type PostgresServer, querySql } from './postmaster.ts';

/** Names the server of the run to the processes of its tests: the URL of a superuser, with a host and a port. */
const VARIABLE = 'LEASEHOLD_TEST_POSTGRES';

let own: Promise<PostgresServer> | undefined;

/** The URL of an empty database, as the superuser who owns it. It is dropped with its scope, under whoever is still connected. */
export async function newDatabase(scope: Scope): Promise<string> {
  const server = process.env[VARIABLE] ?? (await startOwn()).url();
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  // WHY not file_copy: no faster here, and it makes the whole server write a checkpoint, twice, which a server with fsync feels.
  await querySql(server, `create database ${name} template template0 strategy wal_log`);
  scope.after(() => querySql(server, `drop database if exists ${name} with (force)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

function startOwn(): Promise<PostgresServer> {
  own ??= createPostgres().then((server) => {
    // WHY not `after` of node:test: within a test it would belong to that test. The guard does it where the process is killed.
    process.once('beforeExit', () => void server.end());
    return server;
  });
  return own;
}

export interface RunServer {
  /** For the processes of the tests, beside the rest of their environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Resolves when the server and its folder are gone. Not to be forgotten, but safe: the end of this process does it too, even by SIGKILL. */
  end(): Promise<void>;
}

/** One server for all tests of a run. Within a run that has one, such as a test of the runner, it is that one, and stays. */
export async function startRunServer(): Promise<RunServer> {
  const outer = process.env[VARIABLE];
  if (outer !== undefined) return { environment: { [VARIABLE]: outer }, end: async () => {} };
  const server = await createPostgres();
  return { environment: { [VARIABLE]: server.url() }, end: () => server.end() };
}
