/** The source and the target of a migration: a data directory with the embedded database, or a PostgreSQL database. */

import { existsSync, renameSync } from 'node:fs';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, removeUnfinished, syncDir, temporaryPath } from '../platform/private-files.ts';
import { describeAddress, type PostgresAddress } from '../store/postgres/address.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { hasSchema, PostgresSource, PostgresTarget } from '../store/postgres/transfer.ts';
import type { Store } from '../store/sql-store.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import { SqliteSource, SqliteTarget } from '../store/sqlite/transfer.ts';
import type { TransferSource, TransferTarget, VaultMetadata } from '../store/transfer.ts';
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
  openReader(): Promise<TransferSource>;
  /** @throws StartupError if the source has changed since it was opened */
  assertUnchanged(): Promise<void>;
  close(): Promise<void>;
}

/** An empty target. Until it is published, closing it leaves nothing. */
export interface Target {
  readonly writer: TransferTarget;
  /** Commits the copy, and opens it for verification. */
  commit(): Promise<Store>;
  /** Makes the copy the vault of this location. */
  publish(): Promise<void>;
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
      openReader: async () => new SqliteSource(copy.file),
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

/** Creates a missing directory or schema. @throws StartupError if the target is not empty, StoreError */
export function openTarget(location: VaultLocation, metadata: VaultMetadata): Promise<Target> {
  return location.kind === 'database'
    ? openDatabaseTarget(location.address, metadata)
    : openDirectoryTarget(location.dir, metadata);
}

/** A single transaction: its commit publishes the copy. */
async function openDatabaseTarget(address: PostgresAddress, metadata: VaultMetadata): Promise<Target> {
  const store = await PostgresStore.open(address);
  try {
    const writer = await PostgresTarget.open(address, metadata);
    if (writer === null) {
      throw new StartupError(`${describeAddress(address)}, is not empty. Nothing was changed. Give an empty database.`);
    }
    return {
      writer,
      async commit() {
        await writer.commit();
        return store;
      },
      publish: async () => undefined,
      async close() {
        writer.close();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** A new file, which is renamed when it is complete and verified. */
async function openDirectoryTarget(dir: string, metadata: VaultMetadata): Promise<Target> {
  openDataDir(dir);
  const { databaseFile, lockFile } = dataDirPaths(dir);
  checkPrivateFile(lockFile);
  const lock = lockDataDir(lockFile, dir);
  const file = temporaryPath(databaseFile);
  try {
    removeUnfinished(dir);
    if (['', '-wal', '-shm'].some((suffix) => existsSync(databaseFile + suffix))) {
      throw new StartupError(`${databaseFile} exists. Nothing was changed. Give a directory without a database.`);
    }
    const writer = new SqliteTarget(file, metadata);
    let store: SqliteStore | null = null;
    const closeStore = async (): Promise<void> => {
      await store?.close();
      store = null;
    };
    return {
      writer,
      async commit() {
        await writer.commit();
        writer.close();
        store = new SqliteStore(file);
        return store;
      },
      async publish() {
        await closeStore();
        renameSync(file, databaseFile);
        syncDir(dir);
      },
      async close() {
        writer.close();
        await closeStore();
        removeUnfinished(dir);
        lock.release();
      },
    };
  } catch (error) {
    removeUnfinished(dir);
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
