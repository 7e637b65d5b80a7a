/**
 * Opens the keys of a vault with a key slot, or creates the keys of a new vault. The root key file is the secret of the
 * slot `file`. It is created only for a new vault; a wrong key of an existing vault prevents startup.
 */
import { slotPrivateKey, slotPublicKey } from '../crypto/key-slots.ts';
import { newId, newRootKey, timingSafeEqualText } from '../crypto/primitives.ts';
import { parseRootKey, VaultKeys } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import {
  checkPrivateFile,
  readSecretBytes,
  warnIfReadableByOthers,
  writePrivateFile,
} from '../platform/private-files.ts';
import {
  type InitialKeys,
  isAttended,
  type KeySlot,
  type SlotId,
  type SlotName,
  type StoredKeys,
} from '../vault/keys/keyset.ts';
import type { SlotSecrets } from '../vault/ports.ts';
import type { Configuration } from './configuration.ts';

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
  if (secret === null) {
    const missing = `The root key is missing: ${path}. The vault cannot be opened without it. Restore it from your backup.`;
    throw new StartupError(file.problem ?? missing);
  }
  if (stored === null || stored.keyCheck === null) return withFileSlot(VaultKeys.create(Date.now(), secret), secret);
  const keys = openWith(stored, secret);
  if (keys !== null) return { keys, unsaved: null };
  throw new StartupError(`${path} is not the root key of this vault. Nothing was changed. Put the right key back.`);
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
  const name = 'file' as SlotName;
  const publicKey = slotPublicKey(slotPrivateKey(secret));
  const slot = { id: newId() as SlotId, name, kind: 'file', parameters: {}, publicKey, createdAt: Date.now() } as const;
  return { keys, unsaved: keys.initial([slot]) };
}

/** The root key file, and its content: the secret of the slot `file`. */
export interface RootKeyFile {
  readonly path: string;
  /** Null if the file does not exist, or cannot be used. */
  readonly secret: Uint8Array | null;
  /** Why the file cannot be used, in one sentence. Another slot may still open the vault. */
  readonly problem?: string;
}

/**
 * Reads the file once, because it may be a pipe. The default file is made private; another file only causes a warning.
 * @throws StartupError if it cannot be used for a new vault
 */
export function readRootKey(
  configuration: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  mayCreate: boolean,
  warn: (line: string) => void,
): RootKeyFile {
  try {
    return read(configuration, mayCreate, warn);
  } catch (error) {
    if (mayCreate) throw error;
    const path = configuration.rootKeyFile ?? dataDirPaths(configuration.dataDir).rootKeyFile;
    const problem = error instanceof StartupError ? error.message : `${path} cannot be used${errnoSuffix(error)}.`;
    return { path, secret: null, problem };
  }
}

function read(
  { dataDir, rootKeyFile }: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  mayCreate: boolean,
  warn: (line: string) => void,
): RootKeyFile {
  const path = rootKeyFile ?? dataDirPaths(dataDir).rootKeyFile;
  if (rootKeyFile === null) checkPrivateFile(path);
  const text = readIfExists(path);
  if (text === null) return { path, secret: mayCreate ? createRootKey(path) : null };
  if (rootKeyFile !== null) warnIfReadableByOthers(path, warn);
  const secret = parseRootKey(text);
  if (secret !== null) return { path, secret };
  throw new StartupError(`${path} is not a root key: it must contain 32 bytes as base64, on one line.`);
}

function createRootKey(path: string): Uint8Array {
  const secret = newRootKey();
  writePrivateFile(path, `${Buffer.from(secret).toString('base64')}\n`);
  return secret;
}

/** Null if the file does not exist. @throws StartupError */
function readIfExists(file: string): string | null {
  try {
    return readSecretBytes(file).toString('latin1');
  } catch (error) {
    const { cause } = error instanceof StartupError ? error : {};
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return null;
    throw error;
  }
}
