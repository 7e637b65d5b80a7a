/**
 * Opens the vault: the data directory, its lock, the root key, the store, and the state that the ledger keeps in
 * memory.
 */

import type { VaultKeys } from '../crypto/vault-keys.ts';
import { type Clock, DatabaseClock, MAX_TIME, startClock } from '../ledger/clock.ts';
import { initialHead, readVaultState } from '../ledger/vault-state.ts';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { checkPrivateFile, removeUnfinished } from '../platform/private-files.ts';
import type { Store } from '../store/port.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import {
  isDeregistered,
  isEmpty,
  readHighWaterTime,
  readRootKeyCheck,
  readStoredKeys,
} from '../store/vault-metadata.ts';
import { GENESIS_MAC } from '../vault/audit/audit-entry.ts';
import type { InitialKeys } from '../vault/keys/keyset.ts';
import type { Configuration } from './configuration.ts';
import { lockDataDir, markVault, openDataDir } from './data-dir.ts';
import { FsAgentKeyStore } from './fs-agent-key-store.ts';
import { type GivenSecret, type Locked, openKeys } from './open-keys.ts';
import { type OpenedStore, openStore } from './open-store.ts';
import { acceptFinding, describeFinding, findRollback, type RollbackFinding } from './rollback-detection.ts';
import type { RollbackMarker } from './rollback-marker.ts';

const MAX_CLOCK_LAG_MS = 5 * 60_000;

/** Takes the lock of the data directory as one of `resources`. @throws StartupError */
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
  const { dataDir, acceptClock, acceptRollback } = configuration;
  const { agentsDir } = dataDirPaths(dataDir);
  const opened = await openStore(configuration, warn, resources, given, syncFile);
  if ('slots' in opened) return opened;
  const { store, keys, unsaved, rootKeyFile, slotSecrets, marker, checkpointFiles } = opened;
  const isVaultNew = !(await hasVault(store));
  const loss = opened.rollbackAtRest ?? (await findRollback(store, { marker, checkpointFiles }, keys));
  const keyStore = new FsAgentKeyStore(agentsDir);
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

/** @throws StartupError if the database contains rows, but no record of a vault */
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
    `A slot of ${marker.path} is damaged, as after a power failure. The service uses the other slot and rewrites the file.`,
  );
}

/**
 * Warns of missing checkpoint files. A volume that is not mounted must not look like a file that agrees with the log.
 * In the data directory the rollback marker shows that.
 */
function warnOfMissingCheckpoints({ keys, checkpointFiles }: OpenedStore, warn: (line: string) => void): void {
  const [, ...others] = checkpointFiles;
  for (const { path } of others.filter((file) => file.read(keys) === null))
    warn(`${path} has no checkpoint, so this start could not compare the log with it. Is its volume mounted?`);
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
      `The ${whose(shared)}clock is ${minutes} minutes behind the last entry of the log. Set it to the correct time, or start with --accept-clock if the log's time is wrong.`,
    );
  }
  const notBefore = Math.max(lastEntryAt, await store.run(readHighWaterTime()));
  return shared === null ? startClock(notBefore) : new DatabaseClock(shared, notBefore);
}

function whose(shared: number | null): string {
  return shared === null ? '' : "database's ";
}
