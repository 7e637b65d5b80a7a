/**
 * Which store the tests of this process run on, and the database that belongs to a data directory where that is PostgreSQL:
 * a new one for a new directory, and the same one whenever the directory is opened again. It goes when its directory has gone.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAddress } from '../../src/store/postgres/address.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { SyncFile } from '../../src/store/sqlite/wal-sync.ts';
import type { Store } from '../../src/store/store.ts';
import { copyDatabase, createMigrated, dropDatabase } from './database.ts';
import type { Scope } from './directory.ts';

/** Chosen by whoever runs the tests; see scripts/test-matrix.ts. */
const VARIABLE = 'LEASEHOLD_TEST_STORE';

export type StoreName = 'sqlite' | 'postgres';
export const STORE = chosenStore();

function chosenStore(): StoreName {
  const name = process.env[VARIABLE] ?? 'sqlite';
  if (name !== 'sqlite' && name !== 'postgres') throw new Error(`${VARIABLE} must be sqlite or postgres`);
  return name;
}

interface Place {
  readonly url: Promise<string>;
  /** Services and stores that are open there, or were and have not been cleaned up yet. */
  users: number;
  /** Whether the data directory was seen, so that it can be gone. */
  wasThere: boolean;
}

const places = new Map<string, Place>();
let willDropUnused = false;
const preparations = new Set<(url: string) => Promise<void>>();

/** The URL of the data directory's database; null where the vault lies in the directory itself. */
export async function databaseOf(dataDir: string): Promise<string | null> {
  return STORE === 'sqlite' ? null : placeOf(dataDir, createMigrated).url;
}

/** The same for a service that is started with the flags: null where they name a database. */
export async function databaseFor(dataDir: string, flags: readonly string[]): Promise<string | null> {
  return flags.some((flag) => flag.startsWith('--database')) ? null : databaseOf(dataDir);
}

/** Keeps the data directory's database until the scope has ended. To be said after what uses it: scopes clean up in that order. */
export function keepDatabase(scope: Scope, dataDir: string): void {
  const place = places.get(resolve(dataDir));
  if (place === undefined) return;
  place.users += 1;
  place.wasThere = true;
  scope.after(async () => {
    place.users -= 1;
    await dropGone();
  });
}

/** Copies the database of a vault that nobody has open, for a data directory that was copied. */
export async function copyDatabaseOf(from: string, to: string): Promise<void> {
  const url = await databaseOf(from);
  if (url !== null) await placeOf(to, () => copyDatabase(url)).url;
}

/** Gives another data directory the same database, as another node has it. */
export function shareDatabaseOf(from: string, to: string): void {
  const place = places.get(resolve(from));
  if (place === undefined) throw new Error('no database was made for it: several nodes are PostgreSQL’s alone');
  places.set(resolve(to), place);
}

/** Has each database that is made from now on prepared before anybody opens it. */
export function prepareDatabases(scope: Scope, prepare: (url: string) => Promise<void>): void {
  preparations.add(prepare);
  scope.after(() => preparations.delete(prepare));
}

/** The store of a data directory by itself. */
export async function openStore(dataDir: string, syncFile?: SyncFile): Promise<Store> {
  const url = await databaseOf(dataDir);
  if (url === null) return new SqliteStore(join(dataDir, 'leasehold.db'), { syncFile });
  assertNoFile(syncFile);
  return PostgresStore.open(parseAddress(url));
}

/** A test that stands in for the disk is one of SQLite's own: it must not pass where nobody asks that disk. */
export function assertNoFile(syncFile: SyncFile | undefined): void {
  if (syncFile !== undefined) throw new Error('PostgreSQL syncs its files itself: this test belongs to test/sqlite');
}

function placeOf(dataDir: string, make: () => Promise<string>): Place {
  const key = resolve(dataDir);
  if (!willDropUnused) process.once('beforeExit', dropUnused);
  willDropUnused = true;
  const place = places.get(key) ?? { url: makePrepared(make), users: 0, wasThere: existsSync(key) };
  places.set(key, place);
  return place;
}

async function makePrepared(make: () => Promise<string>): Promise<string> {
  await dropGone();
  const url = await make();
  for (const prepare of preparations) await prepare(url);
  return url;
}

/** WHY not with the scope that opened it first: a data directory is often opened again in another one. */
function dropGone(): Promise<void> {
  return drop(([dataDir, { users, wasThere }]) => users === 0 && wasThere && !existsSync(dataDir));
}

/** At the end of the process those that a program was run on, or nobody. The others go with their scopes. */
function dropUnused(): void {
  void drop(([, { users }]) => users === 0);
}

async function drop(isMeant: (entry: [string, Place]) => boolean): Promise<void> {
  const dropped = [...places].filter(isMeant);
  for (const [dataDir] of dropped) places.delete(dataDir);
  const kept = new Set(places.values());
  const ofNobody = new Set(dropped.map(([, place]) => place)).difference(kept);
  await Promise.all([...ofNobody].map(async ({ url }) => dropDatabase(await url)));
}
