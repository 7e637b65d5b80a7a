/**
 * A separate database for each test, on one server for the whole run. If the run started no server, this process starts
 * one with the first database, and ends it when it exits.
 */
import { createHash, randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { readMigrations } from '../../src/store/migrations.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { closeUsers, type Scope } from './directory.ts';
import { createPostgres } from './postgres.ts';
import { type PostgresServer, querySql } from './postmaster.ts';
import { until } from './processes.ts';

/** Names the server of the run to the processes of its tests: the URL of a superuser, with a host and a port. */
const VARIABLE = 'LEASEHOLD_TEST_POSTGRES';
/** Advisory lock held while the template is created. */
const TEMPLATE_LOCK_ID = 0x6d616465;
const RELEASE_TIMEOUT_MS = 120_000;

let own: Promise<PostgresServer> | undefined;
let migrated: Promise<string> | undefined;

/**
 * The URL of an empty database, as the superuser who owns it. It is dropped with its scope, despite open connections.
 */
export async function newDatabase(scope: Scope): Promise<string> {
  const url = await createDatabase('template0');
  scope.after(async () => {
    await closeUsers((place) => place === url);
    await dropDatabase(url);
  });
  return url;
}

const freeDatabases: string[] = [];
let willDropFree = false;

/**
 * The same with the current schema, whose shape a test must not change: the scope’s end gives the database back, and
 * the next caller receives it empty. WHY: PostgreSQL creates and drops a database in 250 ms, and empties it in 30.
 */
export async function newMigratedDatabase(scope: Scope): Promise<string> {
  const free = freeDatabases.pop();
  if (free !== undefined) await emptyDatabase(free);
  const url = free ?? (await createMigratedDatabase());
  if (!willDropFree) process.once('beforeExit', () => void freeDatabases.splice(0).map(dropDatabase));
  willDropFree = true;
  scope.after(() => void freeDatabases.push(url));
  return url;
}

/** Ends the connections to the database, and deletes all rows but the record of its schema. */
function emptyDatabase(url: string): Promise<unknown> {
  return querySql(
    url,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid();
     do $$ declare name text; begin
       for name in select tablename from pg_tables where schemaname = 'leasehold' and tablename <> 'migrations' loop
         execute format('delete from leasehold.%I', name);
       end loop;
     end $$`,
  );
}

/** A database with the current schema; the caller drops it. */
export async function createMigratedDatabase(): Promise<string> {
  migrated ??= findTemplate();
  return createDatabase(await migrated);
}

/** A copy of a database without connections; the caller drops it. */
export function copyDatabase(url: string): Promise<string> {
  return createDatabase(databaseName(url));
}

/** Drops the database despite open connections. */
export async function dropDatabase(url: string): Promise<void> {
  await querySql(await findServer(), `drop database if exists ${databaseName(url)} with (force)`);
}

const databaseName = (url: string): string => new URL(url).pathname.slice(1);

async function createDatabase(template: string): Promise<string> {
  const server = await findServer();
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  // WHY not wal_log: it takes up to twice the processor time. Without fsync the checkpoints of file_copy cost little.
  await querySql(server, `create database ${name} template ${template} strategy file_copy`);
  return urlOf(server, name);
}

/**
 * The name of a database with the current schema. The first caller on the server creates it, which takes as long as a
 * start.
 */
async function findTemplate(): Promise<string> {
  const server = await findServer();
  const hash = createHash('sha256')
    .update(JSON.stringify(readMigrations('postgres')))
    .digest('hex');
  const name = `migrated_${hash.slice(0, 16)}`;
  const session = postgres(server, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await session`select pg_advisory_lock(${TEMPLATE_LOCK_ID})`;
    const [found] = await session`select 1 from pg_database where datname = ${name}`;
    if (found !== undefined) return name;
    const made = await createDatabase('template0');
    await (await PostgresStore.open(parseAddress(made))).close();
    // Its connections close a moment later.
    const rename = `alter database ${databaseName(made)} rename to ${name}`;
    const isRenamed = () =>
      session.unsafe(rename).then(
        () => true,
        () => false,
      );
    await until(isRenamed, RELEASE_TIMEOUT_MS, () => 'the template is still in use');
    return name;
  } finally {
    await session.end({ timeout: 1 });
  }
}

const findServer = async (): Promise<string> => process.env[VARIABLE] ?? (await startOwnServer()).url();

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

function startOwnServer(): Promise<PostgresServer> {
  own ??= createPostgres().then((server) => {
    // WHY not `after` of node:test: within a test it would belong to that test. If the process is killed, the guard
    // ends the server.
    // ORDER: the file's `after` runs on this event too, and stops the users of databases; a later event comes after it.
    process.once('beforeExit', () => setImmediate(() => process.once('beforeExit', () => void server.end())));
    return server;
  });
  return own;
}

export interface SharedServer {
  /** Environment variables for the processes of the tests, in addition to the others. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Resolves when the server and its directory were removed. The end of this process removes them too, even by SIGKILL.
   */
  end(): Promise<void>;
}

/**
 * One server for all tests of a run. A nested run, such as a test of the runner, uses the outer one and does not stop
 * it.
 */
export async function startSharedServer(): Promise<SharedServer> {
  const outer = process.env[VARIABLE];
  if (outer !== undefined) return { environment: { [VARIABLE]: outer }, end: async () => {} };
  const server = await createPostgres();
  return { environment: { [VARIABLE]: server.url() }, end: () => server.end() };
}
