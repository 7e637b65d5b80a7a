/** Opening the store that was chosen, with the keys of the vault in it: the embedded one, or one that several nodes share. */

import { deriveKeys, type VaultKeys } from '../crypto/keys.ts';
import { layOut } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, isReadableByOthers } from '../platform/private-files.ts';
import { describeAddress } from '../store/postgres/address.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { assertUnused } from '../store/sqlite/lock.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import type { Store } from '../store/store.ts';
import { AnchorFile } from './anchor-file.ts';
import type { Configuration } from './configuration.ts';
import { databaseMissing, hadVault } from './data-dir.ts';
import type { DatabaseChoice } from './database-option.ts';
import { checkRollbackAtRest } from './rollback-check.ts';
import { readRootKey } from './root-key.ts';

export interface OpenedStore {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly rootKeyFile: string;
  readonly anchor: AnchorFile;
}

/** The last millisecond whose timestamp has a year of four digits. */
const END_OF_9999_MS = Date.parse('9999-12-31T23:59:59.999Z');
/** How far a node's own clock may be from the database's. */
const MAX_CLOCKS_APART_MS = 60_000;

type Warn = (line: string) => void;

/** @throws StartupError, StoreFailure; then nothing is left open, and nothing of an existing vault was changed */
export async function openStore(configuration: Configuration, warn: Warn, syncFile?: SyncFile): Promise<OpenedStore> {
  const { database } = configuration;
  const opened = await (database === null
    ? openEmbedded(configuration, warn, syncFile)
    : openShared(configuration, database, warn));
  try {
    await assertTimeIsReal(opened.store);
    return opened;
  } catch (error) {
    await opened.store.close();
    throw error;
  }
}

/** The vault's clock goes on from this time, which must have a form in the log. @throws StartupError */
async function assertTimeIsReal(store: Store): Promise<void> {
  const seenAt = await store.readHighWaterTime();
  if (seenAt >= 0 && seenAt <= END_OF_9999_MS) return;
  throw new StartupError(
    "The vault's record of the latest time is out of range: the database was altered outside. Restore a backup.",
  );
}

async function openEmbedded(configuration: Configuration, warn: Warn, syncFile?: SyncFile): Promise<OpenedStore> {
  const { dataDir } = configuration;
  const { databaseFile } = layOut(dataDir);
  const isVaultThere = checkPrivateFile(databaseFile);
  const isUsed = hadVault(dataDir);
  if (!isVaultThere && isUsed) throw databaseMissing(databaseFile);
  for (const suffix of ['-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
  const { keys, rootKeyFile, anchor } = readKeys(configuration, isVaultThere, warn);
  if (!configuration.acceptRollback) await checkRollbackAtRest(databaseFile, anchor, keys);
  assertUnused(databaseFile);
  const store = new SqliteStore(databaseFile, { syncFile, anchor: (entry) => anchor.keep(entry) });
  try {
    if (isUsed && (await isNew(store))) throw databaseMissing(databaseFile);
    return { store, keys, rootKeyFile, anchor };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openShared(configuration: Configuration, database: DatabaseChoice, warn: Warn): Promise<OpenedStore> {
  const { dataDir } = configuration;
  const { databaseFile } = layOut(dataDir);
  const { address, mayMigrate, showsPassword, file } = database;
  if (showsPassword) {
    warn("The database's password stands on the command line, for everybody on this machine: use --database-file.");
  }
  if (file !== null && isReadableByOthers(file)) warn(`Others than its owner may read ${file}: chmod 600 it.`);
  if (checkPrivateFile(databaseFile)) warn(`${databaseFile} is not used: the vault is that of --database.`);
  const store = await PostgresStore.open(address, mayMigrate);
  try {
    await assertClocksAgree(store);
    const isVaultNew = await isNew(store);
    if (isVaultNew && hadVault(dataDir)) {
      throw new StartupError(
        `${describeAddress(address)}, holds no vault, but ${dataDir} has served one. Is it the right database? To begin with an empty vault, give another --data-dir.`,
      );
    }
    return { store, ...readKeys(configuration, !isVaultNew, warn) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Before anything is made: a node that is off must not even begin. @throws StartupError */
async function assertClocksAgree(store: PostgresStore): Promise<void> {
  const askedAt = Date.now();
  const shared = await store.readTime();
  const apartMs = (askedAt + Date.now()) / 2 - shared;
  if (Math.abs(apartMs) <= MAX_CLOCKS_APART_MS) return;
  const seconds = Math.round(Math.abs(apartMs) / 1000);
  const which = apartMs > 0 ? 'ahead of' : 'behind';
  throw new StartupError(`This node's clock is ${seconds} seconds ${which} the database's. Set it right first.`);
}

function readKeys(configuration: Configuration, isVaultThere: boolean, warn: Warn) {
  const rootKeyFile = configuration.rootKeyFile ?? layOut(configuration.dataDir).rootKeyFile;
  const isOwn = configuration.rootKeyFile === null;
  const keys = deriveKeys(readRootKey({ file: rootKeyFile, isDefaultFile: isOwn, vaultExists: isVaultThere }, warn));
  return { keys, rootKeyFile, anchor: new AnchorFile(layOut(configuration.dataDir).anchorFile, keys.row) };
}

/** Whether there is no vault in it, nor what is left of one. */
async function isNew(store: Store): Promise<boolean> {
  return (await store.readRootKeyCheck()) === null && (await store.isEmpty());
}
