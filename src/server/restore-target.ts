/** The target of a restore: a data directory with the embedded database, or a PostgreSQL database. */
import { renameSync } from 'node:fs';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { lstatOrNull, removeUnfinished, syncDir, temporaryPath } from '../platform/private-files.ts';
import type { Store } from '../store/port.ts';
import { pinHost } from '../store/postgres/database-hosts.ts';
import { describeAddress, type PostgresAddress } from '../store/postgres/database-url.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { PostgresTarget } from '../store/postgres/transfer.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import { SqliteTarget } from '../store/sqlite/transfer.ts';
import type { TransferTarget, VaultMetadata } from '../store/transfer.ts';
import { lockDataDir, openDataDir } from './data-dir.ts';

export type VaultLocation =
  | { readonly kind: 'directory'; readonly dir: string }
  /** The address may contain a password: never print it. */
  | { readonly kind: 'database'; readonly address: PostgresAddress };

export function describeLocation(location: VaultLocation): string {
  return location.kind === 'directory' ? location.dir : describeAddress(location.address);
}

/** An empty target. Until it is published, disposing of its resources leaves nothing. */
export interface RestoreTarget {
  readonly writer: TransferTarget;
  /** Commits the copy, and opens it for verification. */
  commit(): Promise<Store>;
  publish(): Promise<void>;
}

/**
 * Opens the target as one of `resources`; creates a missing directory or schema. @throws StartupError if the target is
 * not empty, StoreError
 */
export async function openTarget(
  location: VaultLocation,
  metadata: VaultMetadata,
  resources: AsyncDisposableStack,
): Promise<RestoreTarget> {
  return location.kind === 'database'
    ? openDatabaseTarget(location.address, metadata, resources)
    : openDirectoryTarget(location.dir, metadata, resources);
}

/**
 * Inserts the rows in one transaction. No node starts on them until they are published; without that they are deleted.
 */
async function openDatabaseTarget(
  address: PostgresAddress,
  metadata: VaultMetadata,
  resources: AsyncDisposableStack,
): Promise<RestoreTarget> {
  const pinned = await pinHost(address);
  const store = resources.adopt(await PostgresStore.open(pinned), (each) => each.close());
  const writer = await PostgresTarget.open(pinned, metadata);
  if (writer === null) {
    throw new StartupError(`${describeAddress(address)}, is not empty. Nothing was changed. Give an empty database.`);
  }
  resources.defer(() => writer.close());
  const unpublished = resources.use(new AsyncDisposableStack());
  return {
    writer,
    async commit() {
      await writer.commit();
      unpublished.defer(() => writer.discard());
      return store;
    },
    async publish() {
      await writer.publish();
      unpublished.move();
    },
  };
}

/** Writes a new file, which is renamed when it is complete and verified. */
function openDirectoryTarget(dir: string, metadata: VaultMetadata, resources: AsyncDisposableStack): RestoreTarget {
  openDataDir(dir);
  const { databaseFile } = dataDirPaths(dir);
  resources.adopt(lockDataDir(dir), (lock) => lock.release());
  const file = temporaryPath(databaseFile);
  resources.defer(() => removeUnfinished(dir));
  if (['', '-wal', '-shm'].some((suffix) => lstatOrNull(databaseFile + suffix) !== null)) {
    throw new StartupError(`${databaseFile} exists. Nothing was changed. Give a directory without a database.`);
  }
  const writer = resources.adopt(new SqliteTarget(file, metadata), (each) => each.close());
  let store: SqliteStore | null = null;
  const closeStore = async (): Promise<void> => {
    await store?.close();
    store = null;
  };
  resources.defer(closeStore);
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
  };
}
