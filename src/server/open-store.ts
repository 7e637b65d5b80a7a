/**
 * Opens the embedded or the shared store, and the keys of its vault. The keys are read from a private copy of a
 * database. WHY: reading a SQLite file in WAL mode creates files next to it, and recovery after a kill writes to it.
 */
import { chmodSync, constants, copyFileSync, lstatSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { assertPrivate, checkPrivateFile, temporaryPath, warnIfReadableByOthers } from '../platform/private-files.ts';
import type { Store } from '../store/port.ts';
import { describeAddress } from '../store/postgres/database-url.ts';
import type { PostgresStore } from '../store/postgres/store.ts';
import { assertUnused } from '../store/sqlite/database-lock.ts';
import { assertDiskSpace } from '../store/sqlite/disk-space.ts';
import { hasWriteAheadLog, readAtRest } from '../store/sqlite/log-file.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import { isEmpty, readHighWaterTime, readRootKeyCheck, readStoredKeys } from '../store/vault-metadata.ts';
import type { StoredKeys } from '../vault/keys/keyset.ts';
import type { SlotSecrets } from '../vault/ports.ts';
import { type CheckpointFile, checkpointFilesOf } from './checkpoint-files.ts';
import type { Configuration } from './configuration.ts';
import { databaseMissing, databaseUnreadable, hadVault } from './data-dir.ts';
import { type DatabaseChoice, PASSWORD_ON_COMMAND_LINE } from './database-option.ts';
import { type GivenSecret, type Locked, type OpenedKeys, openUnattended, openWith } from './open-keys.ts';
import { findRollback, type RollbackFinding } from './rollback-detection.ts';
import { RollbackMarker } from './rollback-marker.ts';
import { type RootKeyFile, readRootKey } from './root-key.ts';
import { slotSecretsOf } from './slots/slot-secrets.ts';

export interface OpenedStore extends OpenedKeys {
  readonly store: Store;
  readonly rootKeyFile: RootKeyFile;
  readonly slotSecrets: SlotSecrets;
  readonly marker: RollbackMarker;
  readonly checkpointFiles: readonly CheckpointFile[];
  /** The rollback because of which `store` is a copy of the database; null if `store` is the database. */
  readonly rollbackAtRest: RollbackFinding | null;
  /** Hosts of a shared database that did not respond, and may have entries that the store lacks. */
  readonly unanswered: readonly string[];
}

/** The last millisecond with a four-digit year. */
const END_OF_9999_MS = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

type Warn = (line: string) => void;

/**
 * Opens store and marker as two of `resources`. An error leaves an existing vault unchanged. @throws StartupError,
 * StoreError
 */
export async function openStore(
  configuration: Configuration,
  warn: Warn,
  resources: AsyncDisposableStack,
  given: GivenSecret | null,
  syncFile?: SyncFile,
): Promise<OpenedStore | Locked> {
  const { database } = configuration;
  const opened = await (database === null
    ? openEmbedded(configuration, warn, resources, given, syncFile)
    : openShared(configuration, database, warn, resources, given));
  if ('store' in opened) await assertTimeInRange(opened.store);
  return opened;
}

/** The vault's clock continues from this time, so it must be a valid timestamp. @throws StartupError */
async function assertTimeInRange(store: Store): Promise<void> {
  const seenAt = await store.run(readHighWaterTime());
  if (seenAt >= 0 && seenAt <= END_OF_9999_MS) return;
  throw new StartupError(
    "The vault's record of the latest time is out of range: the database was altered outside. Restore a backup.",
  );
}

async function openEmbedded(
  configuration: Configuration,
  warn: Warn,
  resources: AsyncDisposableStack,
  given: GivenSecret | null,
  syncFile?: SyncFile,
): Promise<OpenedStore | Locked> {
  const { dataDir } = configuration;
  const { databaseFile } = dataDirPaths(dataDir);
  assertDiskSpace(databaseFile);
  const vaultExists = checkPrivateFile(databaseFile);
  const isUsed = hadVault(dataDir);
  if (!vaultExists && isUsed) throw databaseMissing(databaseFile);
  for (const suffix of ['-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
  const rootKeyFile = readRootKey(configuration, !vaultExists, warn);
  const stored = vaultExists ? await readAtRest(databaseFile, (log) => log.run(readStoredKeys())) : null;
  // WHY before it is opened: opening would discard the write-ahead log of a damaged vault.
  if (isUsed && stored?.keyCheck == null && hasWriteAheadLog(databaseFile)) throw databaseUnreadable(databaseFile);
  const slotSecrets = slotSecretsOf(configuration, rootKeyFile);
  const opened = await open(stored, rootKeyFile, slotSecrets, given);
  if ('slots' in opened) return opened;
  const marker = openMarker(dataDir, opened.keys, resources);
  const checkpointFiles = checkpointFilesOf(configuration);
  const isChecked = stored !== null && stored.keyCheck !== null && !configuration.acceptRollback;
  const rollbackAtRest = isChecked
    ? await readAtRest(databaseFile, (log) => findRollback(log, { marker, checkpointFiles }, opened.keys))
    : null;
  // WHY a copy: opening the database changes it, and may discard entries that could still be recovered.
  const file = rollbackAtRest === null ? databaseFile : temporaryPath(databaseFile);
  if (file !== databaseFile) copyDatabaseFiles(databaseFile, file, resources);
  assertUnused(file);
  const store = new SqliteStore(file, { syncFile, keepNewest: (entry) => marker.keep(entry) });
  resources.defer(() => store.close());
  for (const suffix of ['', '-wal', '-shm']) checkPrivateFile(file + suffix);
  if (isUsed && (await isNew(store))) throw databaseMissing(databaseFile);
  return { ...opened, store, rootKeyFile, slotSecrets, marker, checkpointFiles, rollbackAtRest, unanswered: [] };
}

async function openShared(
  configuration: Configuration,
  database: DatabaseChoice,
  warn: Warn,
  resources: AsyncDisposableStack,
  given: GivenSecret | null,
): Promise<OpenedStore | Locked> {
  const { dataDir, mayMigrate } = configuration;
  const { databaseFile } = dataDirPaths(dataDir);
  const { address, showsPassword, file } = database;
  if (showsPassword) warn(PASSWORD_ON_COMMAND_LINE);
  if (file !== null) warnIfReadableByOthers(file, warn);
  if (checkPrivateFile(databaseFile)) warn(`${databaseFile} is not used, because --database names the vault.`);
  // WHY here: the driver takes 2 MiB, and a server with an embedded store never uses it.
  const { PostgresStore } = await import('../store/postgres/store.ts');
  const store = resources.adopt(await PostgresStore.open(address, mayMigrate), (each) => each.close());
  await assertClocksAgree(store);
  const isVaultNew = await isNew(store);
  if (isVaultNew && hadVault(dataDir)) {
    throw new StartupError(
      `${describeAddress(address)}, contains no vault, but ${dataDir} has served one. Give the right database, or another --data-dir to start an empty vault.`,
    );
  }
  const rootKeyFile = readRootKey(configuration, isVaultNew, warn);
  const slotSecrets = slotSecretsOf(configuration, rootKeyFile);
  const opened = await open(await store.run(readStoredKeys(), 'urgent'), rootKeyFile, slotSecrets, given);
  if ('slots' in opened) return opened;
  const marker = openMarker(dataDir, opened.keys, resources);
  const checkpointFiles = checkpointFilesOf(configuration);
  const { unanswered } = store;
  if (unanswered.length > 0) warn(`${unanswered.join(', ')}: no response, so the log there was not compared.`);
  return { ...opened, store, rootKeyFile, slotSecrets, marker, checkpointFiles, rollbackAtRest: null, unanswered };
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

/** @throws StartupError */
async function open(
  stored: StoredKeys | null,
  file: RootKeyFile,
  slotSecrets: SlotSecrets,
  given: GivenSecret | null,
): Promise<OpenedKeys | Locked> {
  if (given === null || stored?.vaultId == null) return openUnattended(stored, file, slotSecrets);
  const keys = openWith(stored, given);
  return keys === null ? { slots: stored.slots, problems: [] } : { keys, unsaved: null };
}

function openMarker(dataDir: string, keys: VaultKeys, resources: AsyncDisposableStack): RollbackMarker {
  const marker = new RollbackMarker(dataDirPaths(dataDir).rollbackMarkerFile, keys);
  resources.defer(() => marker.close());
  return marker;
}

async function isNew(store: Store): Promise<boolean> {
  return (await store.run(readRootKeyCheck())) === null && (await store.run(isEmpty()));
}

const WRITABLE = 0o600;
/** The files of a database. SQLite rebuilds the index, -shm, from the -wal file. */
const SUFFIXES = ['', '-wal'] as const;

/** Copies a database that no process uses to a new file, which is one of `resources`. @throws StartupError */
function copyDatabaseFiles(databaseFile: string, copy: string, resources: AsyncDisposableStack): void {
  resources.defer(() => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(copy + suffix, { force: true });
  });
  for (const suffix of SUFFIXES.filter((each) => isFile(databaseFile + each))) {
    try {
      copyFileSync(databaseFile + suffix, copy + suffix, constants.COPYFILE_FICLONE);
      chmodSync(copy + suffix, WRITABLE);
      assertPrivate(copy + suffix, lstatSync(copy + suffix));
    } catch (error) {
      if (error instanceof StartupError) throw error;
      throw new StartupError(
        `${databaseFile}${suffix} cannot be copied to ${dirname(copy)}${errnoSuffix(error)}. Free enough space there.`,
      );
    }
  }
}

/** @throws StartupError for a link or another kind of file */
function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}
