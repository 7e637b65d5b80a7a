/** Opens the embedded or the shared store, and derives the keys of its vault. */

import { deriveKeys, type VaultKeys } from '../crypto/keys.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, warnIfReadableByOthers } from '../platform/private-files.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import type { Store } from '../store/sql-store.ts';
import { assertUnused } from '../store/sqlite/lock.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import { AnchorFile } from './anchor-file.ts';
import type { Configuration } from './configuration.ts';
import { databaseMissing, hadVault } from './data-dir.ts';
import { type DatabaseChoice, PASSWORD_ON_COMMAND_LINE } from './database-option.ts';
import { checkAtRest } from './rollback-check.ts';
import { readRootKey } from './root-key.ts';

export interface OpenedStore {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly rootKeyFile: string;
  readonly anchor: AnchorFile;
}

/** The last millisecond with a four-digit year. */
const END_OF_9999_MS = Date.parse('9999-12-31T23:59:59.999Z');
/** Maximum difference between a node's clock and the database's. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

type Warn = (line: string) => void;

/**
 * Opens store and anchor as two of `resources`. @throws StartupError, StoreError; then an existing vault is unchanged
 */
export async function openStore(
  configuration: Configuration,
  warn: Warn,
  resources: AsyncDisposableStack,
  syncFile?: SyncFile,
): Promise<OpenedStore> {
  const { database } = configuration;
  const opened = await (database === null
    ? openEmbedded(configuration, warn, resources, syncFile)
    : openShared(configuration, database, warn, resources));
  await assertTimeInRange(opened.store);
  return opened;
}

/** The vault's clock continues from this time, so it must be a valid timestamp. @throws StartupError */
async function assertTimeInRange(store: Store): Promise<void> {
  const seenAt = await store.readHighWaterTime();
  if (seenAt >= 0 && seenAt <= END_OF_9999_MS) return;
  throw new StartupError(
    "The vault's record of the latest time is out of range: the database was altered outside. Restore a backup.",
  );
}

async function openEmbedded(
  configuration: Configuration,
  warn: Warn,
  resources: AsyncDisposableStack,
  syncFile?: SyncFile,
): Promise<OpenedStore> {
  const { dataDir } = configuration;
  const { databaseFile } = dataDirPaths(dataDir);
  const vaultExists = checkPrivateFile(databaseFile);
  const isUsed = hadVault(dataDir);
  if (!vaultExists && isUsed) throw databaseMissing(databaseFile);
  for (const suffix of ['-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
  const known = readKeys(configuration, vaultExists, warn, resources);
  const { anchor } = known;
  await checkAtRest(databaseFile, known, configuration.acceptRollback);
  assertUnused(databaseFile);
  const store = new SqliteStore(databaseFile, { syncFile, anchor: (entry) => anchor.keep(entry) });
  resources.defer(() => store.close());
  if (isUsed && (await isNew(store))) throw databaseMissing(databaseFile);
  return { store, ...known };
}

async function openShared(
  configuration: Configuration,
  database: DatabaseChoice,
  warn: Warn,
  resources: AsyncDisposableStack,
): Promise<OpenedStore> {
  const { dataDir, mayMigrate } = configuration;
  const { databaseFile } = dataDirPaths(dataDir);
  const { address, showsPassword, file } = database;
  if (showsPassword) warn(PASSWORD_ON_COMMAND_LINE);
  if (file !== null) warnIfReadableByOthers(file, warn);
  if (checkPrivateFile(databaseFile)) warn(`${databaseFile} is not used, because --database names the vault.`);
  const store = resources.adopt(await PostgresStore.open(address, mayMigrate), (each) => each.close());
  await assertClocksAgree(store);
  const isVaultNew = await isNew(store);
  if (isVaultNew && hadVault(dataDir)) {
    throw new StartupError(
      `${describeAddress(address)}, contains no vault, but ${dataDir} has served one. Give the right database, or another --data-dir to start an empty vault.`,
    );
  }
  return { store, ...readKeys(configuration, !isVaultNew, warn, resources) };
}

/** Runs before anything is created. @throws StartupError if the clocks differ too much */
async function assertClocksAgree(store: PostgresStore): Promise<void> {
  const readAt = Date.now();
  const shared = await store.readTime();
  const differenceMs = (readAt + Date.now()) / 2 - shared;
  if (Math.abs(differenceMs) <= MAX_CLOCK_DIFFERENCE_MS) return;
  const seconds = Math.round(Math.abs(differenceMs) / 1000);
  const which = differenceMs > 0 ? 'ahead of' : 'behind';
  throw new StartupError(
    `This node's clock is ${seconds} seconds ${which} the database's. Set it to the correct time.`,
  );
}

function readKeys(
  configuration: Configuration,
  vaultExists: boolean,
  warn: Warn,
  resources: AsyncDisposableStack,
): Omit<OpenedStore, 'store'> {
  const rootKeyFile = configuration.rootKeyFile ?? dataDirPaths(configuration.dataDir).rootKeyFile;
  const isDefaultFile = configuration.rootKeyFile === null;
  const keys = deriveKeys(readRootKey({ file: rootKeyFile, isDefaultFile, vaultExists }, warn));
  const anchor = new AnchorFile(dataDirPaths(configuration.dataDir).anchorFile, keys.row);
  resources.defer(() => anchor.close());
  return { keys, rootKeyFile, anchor };
}

/** Whether the store holds neither a vault nor rows of one. */
async function isNew(store: Store): Promise<boolean> {
  return (await store.readRootKeyCheck()) === null && (await store.isEmpty());
}
