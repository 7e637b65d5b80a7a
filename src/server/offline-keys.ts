/** Opens the keys of a vault for a command that runs without the server, or beside one. */
import { existsSync } from 'node:fs';
import { parsePassphrase } from '../backup/encryption.ts';
import { exportAuditKeys } from '../crypto/chain.ts';
import { passphraseSecret } from '../crypto/key-slots.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError, UsageError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { readSecretBytes, warnIfReadableByOthers } from '../platform/private-files.ts';
import { PostgresStore } from '../store/postgres/store.ts';
import { DatabaseLock } from '../store/sqlite/database-lock.ts';
import { hasWriteAheadLog, readAtRest } from '../store/sqlite/log-file.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import type { StoredKeys } from '../vault/keys/keyset.ts';
import type { Configuration } from './configuration.ts';
import { openUnattended, openWith, readRootKey } from './open-keys.ts';
import { slotSecretsOf } from './slots/slot-secrets.ts';

export interface SlotAccess {
  /** The settings of the root key file and of the other unattended slots. */
  readonly configuration: Configuration;
  /** The passphrase of a key slot. If it is given, only that slot is tried; null without one. */
  readonly slotPassphrase: Secret | null;
}

/** `vault` names it in messages, such as `the vault in the backup`. @throws StartupError */
export async function openOffline(
  stored: StoredKeys,
  { configuration, slotPassphrase }: SlotAccess,
  vault: string,
  warn: (line: string) => void,
): Promise<VaultKeys> {
  if (slotPassphrase !== null) return openWithPassphrase(stored, slotPassphrase, vault);
  const rootKey = readRootKey(configuration, false, warn);
  const opened = await openUnattended(stored, rootKey, slotSecretsOf(configuration, rootKey));
  if ('keys' in opened) return opened.keys;
  throw new StartupError(
    `No unattended key slot opens ${vault}: give --root-key-file or --slot-passphrase-file. ${opened.problems.join(' ')}`.trimEnd(),
  );
}

async function openWithPassphrase(stored: StoredKeys, passphrase: Secret, vault: string): Promise<VaultKeys> {
  for (const { kind, parameters } of stored.slots) {
    const secret = kind === 'passphrase' ? await passphraseSecret(passphrase, parameters) : null;
    const keys = secret === null ? null : openWith(stored, secret);
    if (keys !== null) return keys;
  }
  throw new StartupError(`The passphrase opens no key slot of ${vault}. Nothing was changed.`);
}

/** Null without a file. @throws UsageError */
export function readPassphraseFile(file: string | null, warn: (line: string) => void): Secret | null {
  return file === null ? null : parsePassphrase(readSecretFile(file, warn), file);
}

/**
 * Reads a secret file, and warns if others may read it. Removes a byte order mark, as the CLI does when it reads the
 * same file to add the slot. @throws UsageError
 */
export function readSecretFile(file: string, warn: (line: string) => void): string {
  let bytes: Buffer;
  try {
    bytes = readSecretBytes(file);
    warnIfReadableByOthers(file, warn);
  } catch (error) {
    if (error instanceof StartupError && error.cause === undefined) throw error;
    throw new UsageError(`${file} cannot be read${errnoSuffix(error instanceof StartupError ? error.cause : error)}.`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${file} is not text in UTF-8.`);
  }
}

/** @throws StartupError, StoreError */
export async function readVaultKeys(location: Configuration): Promise<VaultKeys> {
  const rootKey = readRootKey(location, false, () => undefined);
  const stored = await readStored(location);
  if (stored === null || stored.keyCheck === null) {
    throw new StartupError(`${location.dataDir} contains no vault that can be read. Give --data-dir, or --database.`);
  }
  const opened = await openUnattended(stored, rootKey, slotSecretsOf(location, rootKey));
  if ('keys' in opened) return opened.keys;
  throw new StartupError(`Only a manual key slot opens this vault. ${opened.problems.join(' ')}`.trimEnd());
}

/**
 * The keys with which an auditor verifies the audit log, as text; they decrypt no value. @throws StartupError,
 * StoreError
 */
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
