/** The source and the target of a migration: a data directory with the embedded database, or a PostgreSQL database. */

import { existsSync } from 'node:fs';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
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
  /** The address may contain a password: never print it. */
  | { readonly kind: 'database'; readonly address: PostgresAddress };

export function describeLocation(location: VaultLocation): string {
  return location.kind === 'directory' ? location.dir : describeAddress(location.address);
}

export interface Source {
  /** Returns the same rows as the reader, as long as `assertUnchanged` passes. */
  readonly store: Store;
  /** @throws StoreError */
  openReader(): Promise<TableReader>;
  /** @throws StartupError if the source has changed since it was opened */
  assertUnchanged(): Promise<void>;
  close(): Promise<void>;
}

export interface Target {
  readonly store: Store;
  openWriter(metadata: TransferMetadata): Promise<TableWriter>;
  close(): Promise<void>;
}

/** Opens the source and changes nothing in it. @throws StartupError, StoreError */
export async function openSource(location: VaultLocation): Promise<Source> {
  if (location.kind === 'database') return openDatabaseSource(location.address);
  const copy = new DatabaseSnapshot(location.dir);
  try {
    const store = new SqliteStore(copy.file);
    return {
      store,
      async openReader() {
        const reader = new SqliteSource(copy.file);
        await reader.addUpAccesses();
        return reader;
      },
      assertUnchanged: async () => copy.assertUnchanged(),
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
 * Nodes must not write during the migration; a moved head shows that one did. WHY not a lock on the head's row: it
 * needs the privilege to write, it writes, and it proves nothing more.
 */
async function openDatabaseSource(address: PostgresAddress): Promise<Source> {
  if (!(await hasSchema(address))) throw new StartupError(`${describeAddress(address)}, contains no vault.`);
  const store = await PostgresStore.open(address, false);
  try {
    const seen = JSON.stringify(await store.readHead());
    return {
      store,
      openReader: () => PostgresSource.open(address),
      async assertUnchanged() {
        if (JSON.stringify(await store.readHead()) === seen) return;
        throw new StartupError(
          `A node still writes to ${describeAddress(address)}. Stop all nodes and run this command again.`,
        );
      },
      close: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Creates a missing directory or schema. @throws StartupError, StoreError */
export async function openTarget(location: VaultLocation): Promise<Target> {
  if (location.kind === 'database') {
    const { address } = location;
    const store = await PostgresStore.open(address);
    return { store, openWriter: (metadata) => PostgresTarget.open(address, metadata), close: () => store.close() };
  }
  const { dir } = location;
  openDataDir(dir);
  const { databaseFile, lockFile } = dataDirPaths(dir);
  checkPrivateFile(lockFile);
  const lock = lockDataDir(lockFile, dir);
  try {
    for (const suffix of ['', '-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
    assertUnused(databaseFile);
    const store = new SqliteStore(databaseFile);
    syncDir(dir);
    return {
      store,
      openWriter: async (metadata) => new SqliteTarget(databaseFile, metadata),
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

/**
 * The default root key file: in the data directory of the source or the target. Null between two PostgreSQL
 * databases.
 */
export function defaultRootKeyFile(from: VaultLocation, to: VaultLocation): string | null {
  const own = [from, to].flatMap((location) =>
    location.kind === 'directory' ? [dataDirPaths(location.dir).rootKeyFile] : [],
  );
  return own.find((file) => existsSync(file)) ?? own[0] ?? null;
}
