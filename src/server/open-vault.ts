/**
 * Opens the vault: the data directory, its lock, the root key, the store, and the state that the ledger keeps in
 * memory.
 */

import { GENESIS_MAC } from '../core/audit.ts';
import { headMac } from '../crypto/chain.ts';
import { timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { type Clock, MAX_TIME, startClock } from '../ledger/clock.ts';
import { DatabaseClock } from '../ledger/database-clock.ts';
import { readVaultState } from '../ledger/vault-state.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, removeUnfinished } from '../platform/private-files.ts';
import type { Store } from '../store/sql-store.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import type { AnchorFile } from './anchor-file.ts';
import type { Configuration } from './configuration.ts';
import { lockDataDir, markVault, openDataDir } from './data-dir.ts';
import { FsAgentKeyStore } from './fs-agent-key-store.ts';
import { openStore } from './open-store.ts';
import { checkRollback } from './rollback-check.ts';
import { wrongRootKey } from './root-key.ts';

/** Maximum time by which the clock may be behind the last log entry. */
const MAX_CLOCK_LAG_MS = 5 * 60_000;

/**
 * Opens the lock, the store and the anchor as three of `resources`. @throws StartupError, StoreError; then an existing
 * vault is unchanged
 */
export async function openVault(
  configuration: Configuration,
  warn: (line: string) => void,
  resources: AsyncDisposableStack,
  syncFile?: SyncFile,
) {
  const { dataDir, acceptClock, acceptRollback } = configuration;
  openDataDir(dataDir);
  const { tokenFile, addressFile, agentsDir } = dataDirPaths(dataDir);
  resources.adopt(lockDataDir(dataDir), (lock) => lock.release());
  removeUnfinished(dataDir);
  for (const file of [tokenFile, addressFile]) checkPrivateFile(file);
  const { store, keys, rootKeyFile, anchor } = await openStore(configuration, warn, resources, syncFile);
  const isVaultNew = !(await hasVault(store, keys, rootKeyFile));
  const loss = await checkRollback(anchor, { end: store, isMultiWriter: store.isMultiWriter, keys }, acceptRollback);
  if (isVaultNew) await initialiseVault(store, keys, rootKeyFile);
  markVault(dataDir);
  warnOfDamage(anchor, warn);
  const memory = await readVaultState(store, keys);
  if (loss !== null) memory.warnings.unshift(loss);
  // ORDER: before the first entry, so that entries without an anchor show that the anchor was deleted.
  else if (anchor.read() === null) await anchor.keep(memory.lastSeenEntry ?? { seq: 0, hmac: GENESIS_MAC });
  const clock = await openClock(store, memory.lastEntryAt, acceptClock);
  const keyStore = new FsAgentKeyStore(agentsDir);
  await keyStore.recover(memory.control.agents(), (id) => store.isDeregistered(id));
  return { keys, store, memory, clock, keyStore, anchor };
}

/** Whether the store holds a vault. @throws StartupError for another root key, before it seals anything */
async function hasVault(store: Store, keys: VaultKeys, file: string): Promise<boolean> {
  const keyCheck = await store.readRootKeyCheck();
  if (keyCheck !== null) assertItsKey(keyCheck, keys, file);
  else if (!(await store.isEmpty())) {
    throw new StartupError(
      "The vault's record is missing from the database, which was altered outside. Restore a backup.",
    );
  }
  return keyCheck !== null;
}

/** One slot may be torn after a power failure; any other damage is tampering. */
function warnOfDamage(anchor: AnchorFile, warn: (line: string) => void): void {
  const found = anchor.read();
  if (found === null || found.entry === null || !found.hasDamagedSlot) return;
  warn(
    `A slot of ${anchor.path} is damaged, as after a power failure. The service uses the other slot and rewrites the file.`,
  );
}

/** When several nodes start together, one creates the vault and the others use it. */
async function initialiseVault(store: Store, keys: VaultKeys, file: string): Promise<void> {
  const head = { seq: 0, hmac: GENESIS_MAC, mac: headMac(keys.audit, 0, GENESIS_MAC), epoch: 0 };
  try {
    await store.initialise(keys.checkValue, head, (await store.readTime()) ?? Date.now());
  } catch (error) {
    const made = await store.readRootKeyCheck();
    if (made === null) throw error;
    assertItsKey(made, keys, file);
  }
}

/** @throws StartupError */
function assertItsKey(keyCheck: string, keys: VaultKeys, file: string): void {
  if (!timingSafeEqualText(keyCheck, keys.checkValue)) throw wrongRootKey(file);
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
  const notBefore = Math.max(lastEntryAt, await store.readHighWaterTime());
  return shared === null ? startClock(notBefore) : new DatabaseClock(shared, notBefore);
}

function whose(shared: number | null): string {
  return shared === null ? '' : "database's ";
}
