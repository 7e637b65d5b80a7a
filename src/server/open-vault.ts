/**
 * Opens the vault: the data directory, its lock, the root key, the store, and the state that the ledger keeps in
 * memory.
 */
import { chmodSync, constants, copyFileSync, lstatSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { type Clock, DatabaseClock, MAX_TIME, startClock } from '../ledger/clock.ts';
import { initialHead, readVaultState } from '../ledger/vault-state.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import {
  assertPrivate,
  checkPrivateFile,
  removeUnfinished,
  temporaryPath,
  warnIfReadableByOthers,
} from '../platform/private-files.ts';
import type { Store } from '../store/port.ts';
import { describeAddress } from '../store/postgres/database-url.ts';
import type { PostgresStore } from '../store/postgres/store.ts';
import { assertUnused } from '../store/sqlite/database-lock.ts';
import { assertDiskSpace } from '../store/sqlite/disk-space.ts';
import { hasWriteAheadLog, readAtRest } from '../store/sqlite/log-file.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import {
  isDeregistered,
  isEmpty,
  readHighWaterTime,
  readRootKeyCheck,
  readStoredKeys,
} from '../store/vault-metadata.ts';
import { GENESIS_MAC } from '../vault/audit/audit-entry.ts';
import type { InitialKeys, StoredKeys } from '../vault/keys/keyset.ts';
import type { SlotSecrets } from '../vault/ports.ts';
import { checkpointFilesOf } from './checkpoint-files.ts';
import type { Configuration } from './configuration.ts';
import { databaseMissing, hadVault, lockDataDir, markVault, openDataDir } from './data-dir.ts';
import { type DatabaseChoice, PASSWORD_ON_COMMAND_LINE } from './flag-values.ts';
import { FsAgentKeyStore } from './fs-agent-key-store.ts';
import {
  type GivenSecret,
  type Locked,
  type OpenedKeys,
  openKeys,
  openUnattended,
  openWith,
  type RootKeyFile,
  readRootKey,
} from './open-keys.ts';
import { acceptFinding, describeFinding, findRollback, type RollbackFinding } from './rollback-detection.ts';
import { RollbackMarker } from './rollback-marker.ts';
import { slotSecretsOf } from './slots/slot-secrets.ts';

const MAX_CLOCK_LAG_MS = 5 * 60_000;

export function prepareDataDir({ dataDir }: Configuration, resources: AsyncDisposableStack): void {
  openDataDir(dataDir);
  const { tokenFile, addressFile } = dataDirPaths(dataDir);
  resources.adopt(lockDataDir(dataDir), (lock) => lock.release());
  removeUnfinished(dataDir);
  for (const file of [tokenFile, addressFile]) checkPrivateFile(file);
}

export type OpenedVault = Exclude<Awaited<ReturnType<typeof openVault>>, Locked>;

/**
 * Opens the store and the rollback marker as two of `resources`. A vault with a rollback that is not accepted is
 * read-only. An error leaves an existing vault unchanged. @throws StartupError, StoreError
 */
export async function openVault(
  configuration: Configuration,
  warn: (line: string) => void,
  resources: AsyncDisposableStack,
  given: GivenSecret | null,
  syncFile?: SyncFile,
) {
  const { dataDir, database, acceptClock, acceptRollback } = configuration;
  const opening = { configuration, warn, resources, given, syncFile };
  const opened = await (database === null ? openEmbedded(opening) : openShared(opening, database));
  if ('slots' in opened) return opened;
  await assertTimeInRange(opened.store);
  const { store, keys, unsaved, rootKeyFile, slotSecrets, marker, checkpointFiles } = opened;
  const isVaultNew = !(await hasVault(store));
  const loss = opened.rollbackAtRest ?? (await findRollback(store, opened, keys));
  const keyStore = new FsAgentKeyStore(dataDirPaths(dataDir).agentsDir);
  const parts = { keys, store, keyStore, marker, slotSecrets, checkpointFiles, loss, isReadOnly: false };
  if (loss !== null && !acceptRollback) {
    // WHY no recovery mode: the entries are not lost if an unreachable host stores them.
    if (opened.unanswered.length > 0) throw behindUnanswered(loss, opened.unanswered);
    const memory = await readVaultState(store, keys);
    memory.warnings.unshift(describeFinding(loss));
    return { ...parts, memory, clock: startClock(memory.lastEntryAt), isReadOnly: true };
  }
  if (unsaved !== null && !(await createVault(store, keys, unsaved))) {
    // Another node has created the vault.
    keys.replaceWith(openKeys(await store.run(readStoredKeys(), 'urgent'), rootKeyFile).keys);
  }
  markVault(dataDir);
  warnOfDamage(marker, warn);
  if (!isVaultNew) warnOfMissingCheckpoints(opened, warn);
  const memory = await readVaultState(store, keys, acceptRollback);
  const accepted = acceptFinding(loss, true);
  if (accepted !== null) memory.warnings.unshift(accepted);
  // ORDER: before the first entry, so that entries without a rollback marker show that the rollback marker was deleted.
  else if (marker.read() === null) await marker.keep(memory.lastSeenEntry ?? { seq: 0, hmac: GENESIS_MAC });
  const clock = await openClock(store, memory.lastEntryAt, acceptClock);
  await keyStore.recover(memory.control.agents(), (id) => store.run(isDeregistered(id)));
  return { ...parts, memory, clock };
}

function behindUnanswered({ what }: RollbackFinding, hosts: readonly string[]): StartupError {
  const names = hosts.join(', ');
  return new StartupError(
    `${what} ${names} did not respond and may have them. Bring that server back; or, if it is lost for good, remove it from the database URL.`,
  );
}

async function hasVault(store: Store): Promise<boolean> {
  if ((await store.run(readRootKeyCheck())) !== null) return true;
  if (await store.run(isEmpty())) return false;
  // Another node may have created the vault between the two reads.
  if ((await store.run(readRootKeyCheck())) !== null) return true;
  throw new StartupError(
    "The vault's record is missing from the database, which was altered outside. Restore a backup.",
  );
}

/** Warns of damaged slots. One slot may be torn after a power failure; any other damage is tampering. */
function warnOfDamage(marker: RollbackMarker, warn: (line: string) => void): void {
  const found = marker.read();
  if (found === null || found.entry === null || !found.hasDamagedSlot) return;
  warn(
    `A slot of ${marker.path} is damaged, as after a power failure. The server uses the other slot and rewrites the file.`,
  );
}

/**
 * Warns of missing checkpoint files. A volume that is not mounted must not look like a file that matches the audit log.
 * In the data directory the rollback marker shows that.
 */
function warnOfMissingCheckpoints({ keys, checkpointFiles }: OpenedStore, warn: (line: string) => void): void {
  const [, ...others] = checkpointFiles;
  for (const { path } of others.filter((file) => file.read(keys) === null))
    warn(`${path} has no checkpoint, so startup could not compare the audit log with it. Is its volume mounted?`);
}

/** Creates the vault. When several nodes start together, one creates it. False if it was another node. */
async function createVault(store: Store, keys: VaultKeys, unsaved: InitialKeys): Promise<boolean> {
  try {
    await store.initialise(keys.checkValue, initialHead(keys), (await store.readTime()) ?? Date.now(), unsaved);
    return true;
  } catch (error) {
    if ((await store.run(readRootKeyCheck())) === null) throw error;
    return false;
  }
}

/** The clock continues from the latest known time, so that expired leases stay expired. @throws StartupError */
async function openClock(store: Store, lastEntryAt: number, acceptClock: boolean): Promise<Clock> {
  const shared = await store.readTime();
  const now = shared ?? Date.now();
  if (now > MAX_TIME) {
    throw new StartupError(`The ${whose(shared)}clock shows a time after the year 9999. Set it to the correct time.`);
  }
  const lag = lastEntryAt - now;
  if (lag > MAX_CLOCK_LAG_MS && !acceptClock) {
    const minutes = Math.round(lag / 60_000);
    throw new StartupError(
      `The ${whose(shared)}clock is ${minutes} minutes behind the last audit entry. Set it to the correct time, or start with --accept-clock if the time of the entry is wrong.`,
    );
  }
  const notBefore = Math.max(lastEntryAt, await store.run(readHighWaterTime()));
  return shared === null ? startClock(notBefore) : new DatabaseClock(shared, notBefore);
}

function whose(shared: number | null): string {
  return shared === null ? '' : "database's ";
}

// Opens the embedded or the shared store, and the keys of its vault. The keys are read from a private copy of a
// database. WHY: reading a SQLite file in WAL mode creates files next to it, and recovery after a kill writes to it.

interface Opening {
  readonly configuration: Configuration;
  readonly warn: (line: string) => void;
  readonly resources: AsyncDisposableStack;
  readonly given: GivenSecret | null;
  readonly syncFile: SyncFile | undefined;
}

interface OpenedStore extends Exclude<Awaited<ReturnType<typeof openKeysAndFiles>>, Locked> {
  readonly store: Store;
  /** The rollback because of which `store` is a copy of the database; null if `store` is the database. */
  readonly rollbackAtRest: RollbackFinding | null;
  /** Hosts of a shared database that did not respond, and may have entries that the store lacks. */
  readonly unanswered: readonly string[];
}

/** The last millisecond with a four-digit year. */
const END_OF_9999_MS = Date.parse('9999-12-31T23:59:59.999Z');
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

/** The vault's clock continues from this time, so it must be a valid timestamp. @throws StartupError */
async function assertTimeInRange(store: Store): Promise<void> {
  const seenAt = await store.run(readHighWaterTime());
  if (seenAt >= 0 && seenAt <= END_OF_9999_MS) return;
  throw new StartupError(
    "The vault's record of the latest time is out of range: the database was altered outside. Restore a backup.",
  );
}

async function openEmbedded(opening: Opening): Promise<OpenedStore | Locked> {
  const { configuration, resources, syncFile } = opening;
  const { dataDir } = configuration;
  const { databaseFile } = dataDirPaths(dataDir);
  assertDiskSpace(databaseFile);
  const vaultExists = checkPrivateFile(databaseFile);
  const isUsed = hadVault(dataDir);
  if (!vaultExists && isUsed) throw databaseMissing(databaseFile);
  for (const suffix of ['-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
  const stored = vaultExists ? await readAtRest(databaseFile, (log) => log.run(readStoredKeys())) : null;
  // WHY before it is opened: opening would discard the write-ahead log of a damaged vault.
  if (isUsed && stored?.keyCheck == null && hasWriteAheadLog(databaseFile)) {
    throw new StartupError(
      `The vault in ${databaseFile} cannot be read: the file or its write-ahead log is damaged, or another program uses it. Nothing was changed. Restore the two files, or a backup.`,
    );
  }
  const opened = await openKeysAndFiles(opening, stored, !vaultExists);
  if ('slots' in opened) return opened;
  const isChecked = stored !== null && stored.keyCheck !== null && !configuration.acceptRollback;
  const rollbackAtRest = isChecked
    ? await readAtRest(databaseFile, (log) => findRollback(log, opened, opened.keys))
    : null;
  // WHY a copy: opening the database changes it, and may discard entries that could still be recovered.
  const file = rollbackAtRest === null ? databaseFile : temporaryPath(databaseFile);
  if (file !== databaseFile) copyDatabaseFiles(databaseFile, file, resources);
  assertUnused(file);
  const store = new SqliteStore(file, { syncFile, keepNewest: (entry) => opened.marker.keep(entry) });
  resources.defer(() => store.close());
  for (const suffix of ['', '-wal', '-shm']) checkPrivateFile(file + suffix);
  if (isUsed && (await isNew(store))) throw databaseMissing(databaseFile);
  return { ...opened, store, rollbackAtRest, unanswered: [] };
}

async function openShared(opening: Opening, database: DatabaseChoice): Promise<OpenedStore | Locked> {
  const { configuration, warn, resources } = opening;
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
  const opened = await openKeysAndFiles(opening, await store.run(readStoredKeys(), 'urgent'), isVaultNew);
  if ('slots' in opened) return opened;
  const { unanswered } = store;
  if (unanswered.length > 0) warn(`${unanswered.join(', ')}: no response, so the audit log there was not compared.`);
  return { ...opened, store, rollbackAtRest: null, unanswered };
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

/**
 * Opens the keys, and the files that are compared with the audit log. Creates a missing root key only for a new vault.
 */
async function openKeysAndFiles(
  { configuration, warn, resources, given }: Opening,
  stored: StoredKeys | null,
  isVaultNew: boolean,
) {
  const rootKeyFile = readRootKey(configuration, isVaultNew, warn);
  const slotSecrets = slotSecretsOf(configuration, rootKeyFile);
  const opened = await openKeysWith(given, stored, rootKeyFile, slotSecrets);
  if ('slots' in opened) return opened;
  const marker = new RollbackMarker(dataDirPaths(configuration.dataDir).rollbackMarkerFile, opened.keys);
  resources.defer(() => marker.close());
  return { ...opened, rootKeyFile, slotSecrets, marker, checkpointFiles: checkpointFilesOf(configuration) };
}

async function openKeysWith(
  given: GivenSecret | null,
  stored: StoredKeys | null,
  file: RootKeyFile,
  slotSecrets: SlotSecrets,
): Promise<OpenedKeys | Locked> {
  if (given === null || stored?.vaultId == null) return openUnattended(stored, file, slotSecrets);
  const keys = openWith(stored, given);
  return keys === null ? { slots: stored.slots, problems: [] } : { keys, unsaved: null };
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

function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}
