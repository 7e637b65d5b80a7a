/** The two ends of a move: a data directory with the embedded database, or a PostgreSQL; and what either is to be opened for. */

import { existsSync } from 'node:fs';
import { layOut } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, syncDir } from '../platform/private-files.ts';
import { describeAddress, type PostgresAddress } from '../store/postgres/address.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { hasSchema, PostgresSource, PostgresTarget } from '../store/postgres/transfer.ts';
import { assertUnused } from '../store/sqlite/lock.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import { SqliteSource, SqliteTarget } from '../store/sqlite/transfer.ts';
import type { Store } from '../store/store.ts';
import type { TableReader, TableWriter, TransferMetadata } from '../store/transfer.ts';
import { openDataDir } from './data-dir.ts';
import { lockDataDir } from './data-dir-lock.ts';
import { DatabaseSnapshot } from './snapshot.ts';

export type VaultLocation =
  | { readonly kind: 'directory'; readonly dir: string }
  /** It may hold a password: never to be printed. */
  | { readonly kind: 'database'; readonly address: PostgresAddress };

export function describePlace(place: VaultLocation): string {
  return place.kind === 'directory' ? place.dir : describeAddress(place.address);
}

export interface Source {
  /** Reads the same as the carrier, as long as `assertStill` holds. */
  readonly store: Store;
  /** @throws StoreFailure */
  openCarrier(): Promise<TableReader>;
  /** @throws StartupError where it has changed since it was opened */
  assertUnchanged(): Promise<void>;
  close(): Promise<void>;
}

export interface Target {
  readonly store: Store;
  openCarrier(cargo: TransferMetadata): Promise<TableWriter>;
  close(): Promise<void>;
}

/** For reading: nothing of it changes. @throws StartupError, StoreFailure */
export async function openSource(place: VaultLocation): Promise<Source> {
  if (place.kind === 'database') return openDatabaseSource(place.address);
  const copy = new DatabaseSnapshot(place.dir);
  try {
    const store = new SqliteStore(copy.file);
    return {
      store,
      async openCarrier() {
        const carrier = new SqliteSource(copy.file);
        await carrier.addUpAccesses();
        return carrier;
      },
      assertUnchanged: async () => copy.assertStill(),
      async close() {
        await store.close();
        copy.remove();
      },
    };
  } catch (error) {
    copy.remove();
    throw error;
  }
}

/**
 * Nodes must not write while it is read, and what they write is noticed: the head has moved then. WHY not the lock of the head's
 * row: it takes a right to write, and writes; and nothing more would be known when it is given free.
 */
async function openDatabaseSource(address: PostgresAddress): Promise<Source> {
  if (!(await hasSchema(address))) throw new StartupError(`${describeAddress(address)}, holds no vault.`);
  const store = await PostgresStore.open(address, false);
  try {
    const seen = JSON.stringify(await store.readHead());
    return {
      store,
      openCarrier: () => PostgresSource.open(address),
      async assertUnchanged() {
        if (JSON.stringify(await store.readHead()) === seen) return;
        throw new StartupError(
          `A node still writes to ${describeAddress(address)}: stop every one of them, and run this again.`,
        );
      },
      close: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Makes what is missing of it: the directory, the schema. @throws StartupError, StoreFailure */
export async function openTarget(place: VaultLocation): Promise<Target> {
  if (place.kind === 'database') {
    const { address } = place;
    const store = await PostgresStore.open(address);
    return { store, openCarrier: (cargo) => PostgresTarget.open(address, cargo), close: () => store.close() };
  }
  const { dir } = place;
  openDataDir(dir);
  const { databaseFile, lockFile } = layOut(dir);
  checkPrivateFile(lockFile);
  const lock = lockDataDir(lockFile, dir);
  try {
    for (const suffix of ['', '-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
    assertUnused(databaseFile);
    const store = new SqliteStore(databaseFile);
    syncDir(dir);
    return {
      store,
      openCarrier: async (cargo) => new SqliteTarget(databaseFile, cargo),
      async close() {
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The root key of a move, where no other file is named: it lies beside the embedded database. Null between two PostgreSQLs. */
export function rootKeyBeside(from: VaultLocation, to: VaultLocation): string | null {
  const own = [from, to].flatMap((place) => (place.kind === 'directory' ? [layOut(place.dir).rootKeyFile] : []));
  return own.find((file) => existsSync(file)) ?? own[0] ?? null;
}
