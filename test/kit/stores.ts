/**
 * The store of the tests of this process, and on PostgreSQL the database that belongs to a data directory: a new one
 * for a new directory, and the same one when the directory is opened again. It is dropped after its directory was
 * removed.
 */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Store } from '../../src/store/port.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { SyncFile } from '../../src/store/sqlite/wal-sync.ts';
import { copyDatabase, createMigratedDatabase, dropDatabase } from './database.ts';
import type { Scope } from './directory.ts';

/** Set by the test runner; see scripts/test-matrix.ts. */
const VARIABLE = 'LEASEHOLD_TEST_STORE';

export type StoreName = 'sqlite' | 'postgres';
export const STORE = chosenStore();

function chosenStore(): StoreName {
  const name = process.env[VARIABLE] ?? 'sqlite';
  if (name !== 'sqlite' && name !== 'postgres') throw new Error(`${VARIABLE} must be sqlite or postgres`);
  return name;
}

interface TestDatabase {
  readonly url: Promise<string>;
  /** The number of services and stores on it whose clean-up has not run yet. */
  users: number;
  /** Whether the data directory existed, so that a missing one was removed. */
  wasSeen: boolean;
}

const databases = new Map<string, TestDatabase>();
let willDropUnused = false;
const preparations = new Set<(url: string) => Promise<void>>();

/** The URL of the data directory's database; null if the vault is in the directory. */
export async function databaseUrlOf(dataDir: string): Promise<string | null> {
  return STORE === 'sqlite' ? null : databaseAt(dataDir, createMigratedDatabase).url;
}

/** The same for a service with these flags: null if they name a database. */
export async function databaseUrlFor(dataDir: string, flags: readonly string[]): Promise<string | null> {
  return flags.some((flag) => flag.startsWith('--database')) ? null : databaseUrlOf(dataDir);
}

/**
 * Keeps the data directory's database until the scope ends. Call it after its users are registered, because scopes
 * clean up in that order.
 */
export function keepDatabase(scope: Scope, dataDir: string): void {
  const database = databases.get(resolve(dataDir));
  if (database === undefined) return;
  database.users += 1;
  database.wasSeen = true;
  scope.after(async () => {
    database.users -= 1;
    await dropOrphaned();
  });
}

/** Copies the database of a closed vault, for a copied data directory. */
export async function copyDatabaseOf(from: string, to: string): Promise<void> {
  const url = await databaseUrlOf(from);
  if (url !== null) await databaseAt(to, () => copyDatabase(url)).url;
}

/** Gives another data directory the same database, as for another node. */
export function shareDatabaseOf(from: string, to: string): void {
  const database = databases.get(resolve(from));
  if (database === undefined) throw new Error('no database was made for it: several nodes are PostgreSQL’s alone');
  databases.set(resolve(to), database);
}

/** Prepares each database created from now on before it is opened. */
export function prepareDatabases(scope: Scope, prepare: (url: string) => Promise<void>): void {
  preparations.add(prepare);
  scope.after(() => preparations.delete(prepare));
}

/** The store of a data directory without a service. */
export async function openStore(dataDir: string, syncFile?: SyncFile): Promise<Store> {
  const url = await databaseUrlOf(dataDir);
  // WHY no checkpoint while idle: its thread would keep the next store from opening the file, where opening it again
  // without closing simulates a crash.
  const checkpoints = { idleMs: 2 ** 31 - 1 };
  if (url === null) return new SqliteStore(join(dataDir, 'leasehold.db'), { syncFile, checkpoints });
  rejectSyncFile(syncFile);
  return PostgresStore.open(parseAddress(url));
}

/**
 * Fails on PostgreSQL: a test that replaces the disk's sync is about SQLite and would pass without testing anything.
 */
export function rejectSyncFile(syncFile: SyncFile | undefined): void {
  if (syncFile !== undefined) throw new Error('PostgreSQL syncs its files itself: this test belongs to test/sqlite');
}

function databaseAt(dataDir: string, make: () => Promise<string>): TestDatabase {
  const key = resolve(dataDir);
  if (!willDropUnused) process.once('beforeExit', dropUnused);
  willDropUnused = true;
  const database = databases.get(key) ?? { url: makePrepared(make), users: 0, wasSeen: existsSync(key) };
  databases.set(key, database);
  return database;
}

async function makePrepared(make: () => Promise<string>): Promise<string> {
  await dropOrphaned();
  const url = await make();
  for (const prepare of preparations) await prepare(url);
  return url;
}

/** WHY not with the scope that opened it first: tests often open a data directory again in another scope. */
function dropOrphaned(): Promise<void> {
  return drop(([dataDir, { users, wasSeen }]) => users === 0 && wasSeen && !existsSync(dataDir));
}

/** Drops databases without users at the end of the process. The others are dropped with their scopes. */
function dropUnused(): void {
  void drop(([, { users }]) => users === 0);
}

async function drop(shouldDrop: (entry: [string, TestDatabase]) => boolean): Promise<void> {
  const dropped = [...databases].filter(shouldDrop);
  for (const [dataDir] of dropped) databases.delete(dataDir);
  const kept = new Set(databases.values());
  const unused = new Set(dropped.map(([, database]) => database)).difference(kept);
  await Promise.all([...unused].map(async ({ url }) => dropDatabase(await url)));
}
