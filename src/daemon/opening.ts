/** Opening the vault: the data directory, its lock, the root key, the store, and what the ledger needs in memory. */
import { FIRST_LINK } from '../core/audit.ts';
import { headMac } from '../crypto/chain.ts';
import { deriveKeys, isSameText, type VaultKeys } from '../crypto/keys.ts';
import type { Store } from '../store/port.ts';
import { SqliteStore } from '../store/sqlite/store.ts';
import type { SyncFile } from '../store/sqlite/walsync.ts';
import { type Clock, startClock } from '../vault/clock.ts';
import { type Memory, readMemory } from '../vault/memory.ts';
import type { Configuration } from './configuration.ts';
import { hasRemains, layOut, lostDatabase, openDataDir } from './datadir.ts';
import { checkPrivateFile, removeUnfinished, StartError } from './files.ts';
import { KeyDirs } from './keydirs.ts';
import { lockDataDir } from './lock.ts';
import { readRootKey } from './rootkey.ts';

/** How far the clock may be behind the log's last entry. */
const MAX_CLOCK_LAG_MS = 5 * 60_000;

export interface OpenedVault {
  readonly keys: VaultKeys;
  readonly store: Store;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly keyDirs: KeyDirs;
  readonly tokenFile: string;
  /** Closes the store and gives the data directory free. */
  close(): Promise<void>;
}

/** @throws StartError, StoreFailure: then nothing is left open, and nothing of an existing vault was changed */
export async function openVault(
  configuration: Configuration,
  warn: (line: string) => void,
  syncFile?: SyncFile,
): Promise<OpenedVault> {
  const { dataDir } = configuration;
  openDataDir(dataDir);
  const { databaseFile, tokenFile, agentsDir, lockFile, rootKeyFile: ownRootKeyFile } = layOut(dataDir);
  checkPrivateFile(lockFile);
  const lock = lockDataDir(lockFile, dataDir);
  let store: SqliteStore | null = null;
  try {
    removeUnfinished(dataDir);
    const isVaultThere = checkPrivateFile(databaseFile);
    checkPrivateFile(tokenFile);
    const isUsed = hasRemains(dataDir);
    if (!isVaultThere && isUsed) throw lostDatabase(databaseFile);
    for (const suffix of ['-wal', '-shm']) checkPrivateFile(databaseFile + suffix);
    const rootKeyFile = configuration.rootKeyFile ?? ownRootKeyFile;
    const isOwn = configuration.rootKeyFile === null;
    const keys = deriveKeys(readRootKey({ file: rootKeyFile, isOwn, isVaultThere }, warn));
    store = new SqliteStore(databaseFile, { syncFile });
    if (isUsed && (await store.readKeyCheck()) === null && (await store.isEmpty())) throw lostDatabase(databaseFile);
    await checkRootKey(store, keys, rootKeyFile);
    const memory = await readMemory(store, keys);
    const clock = openClock(memory.lastEntryAt, await store.readSeenTime(), configuration.acceptClock);
    const keyDirs = new KeyDirs(agentsDir);
    const opened = store;
    await keyDirs.settle(memory.control.agents(), (id) => opened.isDeregistered(id));
    return {
      keys,
      store: opened,
      memory,
      clock,
      keyDirs,
      tokenFile,
      async close() {
        await opened.close();
        lock.release();
      },
    };
  } catch (error) {
    await store?.close();
    lock.release();
    throw error;
  }
}

/** A vault is bound to its root key: another one is refused before it seals anything. */
async function checkRootKey(store: Store, keys: VaultKeys, file: string): Promise<void> {
  const keyCheck = await store.readKeyCheck();
  if (keyCheck === null) {
    if (!(await store.isEmpty())) {
      throw new StartError(
        "The vault's own record is missing from the database: it was altered outside. Restore a backup.",
      );
    }
    const head = { seq: 0, hmac: FIRST_LINK, mac: headMac(keys.audit, 0, FIRST_LINK), epoch: 0 };
    await store.initialise(keys.checkValue, head, Date.now());
  } else if (!isSameText(keyCheck, keys.checkValue)) {
    throw new StartError(`${file} is not the root key of this vault. Put the right one back; nothing was changed.`);
  }
}

/** A clock that goes on from the latest time known, so that what had ended stays ended. */
function openClock(lastEntryAt: number, seenAt: number, acceptClock: boolean): Clock {
  const lag = lastEntryAt - Date.now();
  if (lag > MAX_CLOCK_LAG_MS && !acceptClock) {
    const minutes = Math.round(lag / 60_000);
    throw new StartError(
      `The clock is ${minutes} minutes behind the last entry of the log. Set it right; or, if the log's time was the wrong one, start with --accept-clock.`,
    );
  }
  return startClock(Math.max(lastEntryAt, seenAt));
}
