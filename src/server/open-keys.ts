/** Opens the keys of a vault with a key slot, or creates the keys of a new vault. */

import { slotPrivateKey, slotPublicKey } from '../crypto/key-slots.ts';
import { newId, timingSafeEqualText } from '../crypto/primitives.ts';
import { VaultKeys } from '../crypto/vault-keys.ts';
import { StartupError } from '../platform/errors.ts';
import {
  type InitialKeys,
  isAttended,
  type KeySlot,
  type SlotId,
  type SlotKind,
  type SlotName,
  type StoredKeys,
} from '../vault/keys/keyset.ts';
import type { SlotSecrets } from '../vault/ports.ts';
import { type RootKeyFile, rootKeyMissing, wrongRootKey } from './root-key.ts';

/** The secret of a slot that an operator gave, or the private half of the slot that opened the vault before. */
export type GivenSecret = Parameters<typeof VaultKeys.open>[1];

export interface OpenedKeys {
  readonly keys: VaultKeys;
  /** The keys of a new vault, which does not store them yet; null for an existing one. */
  readonly unsaved: InitialKeys | null;
}

/** `stored` is null for a new vault. @throws StartupError */
export function openKeys(stored: StoredKeys | null, file: RootKeyFile): OpenedKeys {
  const { path, secret } = file;
  if (secret === null) throw new StartupError(file.problem ?? rootKeyMissing(path));
  if (stored === null || stored.keyCheck === null) return withFileSlot(VaultKeys.create(Date.now(), secret), secret);
  const keys = openWith(stored, secret);
  if (keys === null) throw wrongRootKey(path);
  return { keys, unsaved: null };
}

/**
 * Null if the secret belongs to no slot of the vault. @throws StartupError for a database that was modified outside
 * Leasehold
 */
export function openWith(stored: StoredKeys, secret: GivenSecret): VaultKeys | null {
  if (stored.keyset === null || stored.slots.length === 0) {
    throw new StartupError(
      `The vault's ${stored.keyset === null ? 'keyset is' : 'key slots are'} missing from the database, which was altered outside. Restore a backup.`,
    );
  }
  const keys = VaultKeys.open(stored, secret);
  if (keys === null || timingSafeEqualText(keys.checkValue, stored.keyCheck ?? '')) return keys;
  throw new StartupError("The vault's record in the database was altered outside. Restore a backup.");
}

/** The vault has manual slots, and no unattended slot opened it. */
export interface Locked {
  readonly slots: readonly KeySlot[];
  readonly problems: readonly string[];
}

/**
 * Opens the keys like `openKeys`, with every unattended slot. @throws StartupError if none opens and there is no manual
 * slot
 */
export async function openUnattended(
  stored: StoredKeys | null,
  file: RootKeyFile,
  slotSecrets: SlotSecrets,
): Promise<OpenedKeys | Locked> {
  if (stored?.vaultId == null || stored.keyset === null || stored.slots.length === 0) return openKeys(stored, file);
  const problems: string[] = [];
  for (const slot of stored.slots.filter(({ kind }) => !isAttended(kind))) {
    const found = await slotSecrets.open(slot, stored.vaultId);
    const keys = 'secret' in found ? openWith(stored, found.secret) : null;
    if (keys !== null) return { keys, unsaved: null };
    problems.push(
      `Key slot ${slot.name}: ${'problem' in found ? found.problem : 'its secret does not open the vault'}.`,
    );
  }
  const { slots } = stored;
  if (slots.some(({ kind }) => isAttended(kind))) return { slots, problems };
  if (stored.slots.every(({ kind }) => kind === 'file')) return openKeys(stored, file);
  throw new StartupError(`No key slot opens the vault. ${problems.join(' ')}`);
}

function withFileSlot(keys: VaultKeys, secret: Uint8Array): OpenedKeys {
  return { keys, unsaved: keys.initial([newSlot('file', 'file' as SlotName, secret)]) };
}

function newSlot(kind: SlotKind, name: SlotName, secret: Uint8Array): KeySlot {
  const publicKey = slotPublicKey(slotPrivateKey(secret));
  return { id: newId() as SlotId, name, kind, parameters: {}, publicKey, createdAt: Date.now() };
}
