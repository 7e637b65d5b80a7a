/** Reads the keys of a vault for a command that neither starts nor changes it, whether a service runs or not. */

import { existsSync } from 'node:fs';
import type { StoredKeys } from '../core/keyset.ts';
import { exportAuditKeys } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';
import { hasWriteAheadLog, readAtRest } from '../store/sqlite/log-file.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import type { Configuration } from './configuration.ts';
import { openUnattended } from './open-keys.ts';
import { readRootKey } from './root-key.ts';
import { slotSecretsOf } from './slots/slot-secrets.ts';

/** @throws StartupError, StoreError */
export async function readVaultKeys(location: Configuration): Promise<VaultKeys> {
  const rootKey = readRootKey(location, false, () => undefined);
  const stored = await readStored(location);
  if (stored === null || stored.keyCheck === null) {
    throw new StartupError(`${location.dataDir} contains no vault that can be read. Give --data-dir, or --database.`);
  }
  const opened = await openUnattended(stored, rootKey, slotSecretsOf(location, rootKey));
  if ('keys' in opened) return opened.keys;
  throw new StartupError(`Only a person can open this vault. ${opened.problems.join(' ')}`.trimEnd());
}

/** The keys with which an auditor verifies the log, as text; they decrypt no value. @throws StartupError, StoreError */
export async function readAuditKeys(location: Configuration): Promise<string> {
  return exportAuditKeys(await readVaultKeys(location));
}

async function readStored({ dataDir, database }: Configuration): Promise<StoredKeys | null> {
  if (database !== null) {
    const store = await PostgresStore.open(database.address, false);
    return store.run(readStoredKeys()).finally(() => store.close());
  }
  const { databaseFile, lockFile } = dataDirPaths(dataDir);
  if (!existsSync(databaseFile)) return null;
  const lock = existsSync(lockFile) ? DatabaseLock.takeShared(lockFile) : null;
  try {
    const isImmutable = lock !== null && !hasWriteAheadLog(databaseFile);
    return await readAtRest(databaseFile, (log) => log.run(readStoredKeys()), isImmutable);
  } finally {
    lock?.release();
  }
}
