/** Opens a vault for a command that needs its keys and runs without the service. */
import { parsePassphrase } from '../backup/keys.ts';
import type { Secret } from '../core/credential.ts';
import type { StoredKeys } from '../core/keyset.ts';
import { passphraseSecret } from '../crypto/key-slots.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { StartupError, UsageError } from '../platform/errors.ts';
import { readSecretBytes, warnIfReadableByOthers } from '../platform/private-files.ts';
import type { Configuration } from './configuration.ts';
import { openUnattended, openWith } from './open-keys.ts';
import { readRootKey } from './root-key.ts';
import { slotSecretsOf } from './slots/slot-secrets.ts';

/** What opens the vault. */
export interface SlotAccess {
  /** For the root key file, and for the other slots that need no person. */
  readonly configuration: Configuration;
  /** The passphrase of a key slot, which is then the only one that is tried; null without one. */
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
    `No key slot opens ${vault} without a person: give --slot-passphrase-file. ${opened.problems.join(' ')}`.trimEnd(),
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
 * Warns if others may read it. Without a byte order mark, as the command `leasehold` reads the same file when it adds
 * the slot. @throws UsageError
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
