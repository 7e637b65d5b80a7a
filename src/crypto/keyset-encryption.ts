/**
 * The keyset: one JSON document with all keys of a vault, encrypted with AES-256-GCM under a key derived from the root
 * key. Layout: nonce (12 bytes) | ciphertext | tag (16). SOURCE: NIST SP 800-38D; docs/formats.md, "Keys".
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { EncryptedKeyset, KeysetEdit, SlotId, StoredKeys, VaultId } from '../vault/keys/keyset.ts';
import type { AuditKey } from './chain.ts';
import { slotPublicKey, unwrapRoot } from './key-slots.ts';
import {
  decodeStrictBase64,
  decryptGcm,
  encryptGcm,
  GCM_NONCE_BYTES,
  KEY_BYTES,
  timingSafeEqualText,
} from './primitives.ts';

/** All keys are base64 of 32 bytes. */
export interface KeysetDocument {
  readonly format: typeof FORMAT;
  readonly vaultId: VaultId;
  /** Equals `key_check` of the table `vault`. */
  readonly check: string;
  /** The data keys; the last one encrypts new values. The id is 4 bytes in hexadecimal. */
  readonly data: readonly { readonly id: string; readonly key: string; readonly createdAt: number }[];
  /** The audit keys in the order of `fromSeq`, the first entry that each authenticates. */
  readonly audit: readonly { readonly fromSeq: number; readonly key: string }[];
  readonly row: string;
  readonly challenge: string;
  /** Seeds of Ed25519 keys; the last one signs checkpoints. */
  readonly signing: readonly { readonly generation: number; readonly seed: string }[];
  /** The ids of the slots in force. A row of another slot is ignored, even if its MAC is valid. */
  readonly slots: readonly SlotId[];
}

const FORMAT = 'leasehold-keyset-v1';
const INFO = 'leasehold/v2/keyset';

export const newKey = (): string => randomBytes(KEY_BYTES).toString('base64');

const newVaultId = (): VaultId => randomBytes(16).toString('base64url') as VaultId;

/**
 * Four bytes at the beginning of every value that the key encrypts. Derived, so that no generator needs to be unique.
 */
function dataKeyId(key: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64')).update('data key id').digest('hex').slice(0, 8);
}

export function newKeyset(now: number): KeysetDocument {
  const key = newKey();
  return {
    format: FORMAT,
    vaultId: newVaultId(),
    check: newKey(),
    data: [{ id: dataKeyId(key), key, createdAt: now }],
    audit: [{ fromSeq: 1, key: newKey() }],
    row: newKey(),
    challenge: newKey(),
    signing: [{ generation: 1, seed: newKey() }],
    slots: [],
  };
}

/** Returns the changed document. `replaceRoot` changes nothing in it. */
export function editKeyset(document: KeysetDocument, edit: KeysetEdit): KeysetDocument {
  const { data, audit, signing, slots } = document;
  switch (edit.kind) {
    case 'addDataKey': {
      const key = edit.key.reveal();
      return { ...document, data: [...data, { id: dataKeyId(key), key, createdAt: edit.createdAt }] };
    }
    case 'removeDataKey':
      return { ...document, data: data.filter(({ id }, index) => id !== edit.id || index === data.length - 1) };
    case 'addAuditKey':
      return { ...document, audit: [...audit, { fromSeq: edit.fromSeq, key: edit.key.reveal() }] };
    case 'addSigningKey': {
      const generation = (signing.at(-1)?.generation ?? 0) + 1;
      return { ...document, signing: [...signing, { generation, seed: edit.seed.reveal() }] };
    }
    case 'replaceRoot':
      return document;
    case 'addSlot':
      return { ...document, slots: [...slots, edit.id] };
    case 'removeSlot':
      return { ...document, slots: slots.filter((id) => id !== edit.id) };
  }
}

/** Whether the document can follow from the previous one: these keys never change, or only grow. */
export function isSuccessor(document: KeysetDocument, former: KeysetDocument): boolean {
  const kept = ({ vaultId, check, row, challenge, audit, signing }: KeysetDocument): string =>
    JSON.stringify([
      ...[vaultId, check, row, challenge],
      audit.slice(0, former.audit.length),
      signing.slice(0, former.signing.length),
    ]);
  return timingSafeEqualText(kept(document), kept(former));
}

function keysetKey(root: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', root, '', INFO, KEY_BYTES));
}

function associatedBytes(vaultId: VaultId, { version, rootVersion }: Omit<EncryptedKeyset, 'sealed'>): Buffer {
  return Buffer.from(JSON.stringify([FORMAT, vaultId, rootVersion, version]));
}

export function encryptKeyset(
  root: Uint8Array,
  document: KeysetDocument,
  versions: Omit<EncryptedKeyset, 'sealed'>,
): EncryptedKeyset {
  const nonce = randomBytes(GCM_NONCE_BYTES);
  const associated = associatedBytes(document.vaultId, versions);
  const encrypted = encryptGcm(keysetKey(root), nonce, associated, JSON.stringify(document));
  return { ...versions, sealed: Buffer.concat([nonce, ...encrypted]) };
}

/**
 * Null if it does not authenticate, or is not a keyset. It may be modified, from another vault or version, or under
 * another root key.
 */
export function decryptKeyset(root: Uint8Array, vaultId: VaultId, stored: EncryptedKeyset): KeysetDocument | null {
  const { sealed } = stored;
  if (sealed.length < GCM_NONCE_BYTES) return null;
  const nonce = sealed.subarray(0, GCM_NONCE_BYTES);
  const plain = decryptGcm(keysetKey(root), nonce, associatedBytes(vaultId, stored), sealed.subarray(GCM_NONCE_BYTES));
  return plain === null ? null : parseDocument(plain.toString('utf8'));
}

const VAULT_ID = /^[A-Za-z0-9_-]{22}$/;
const DATA_KEY_ID = /^[0-9a-f]{8}$/;
const SLOT_ID = /^[\w-]{1,64}$/;

/**
 * Null for a text that is not a keyset. WHY: the author of a file from elsewhere chose its root key, so that any
 * content authenticates.
 */
function parseDocument(text: string): KeysetDocument | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  const { format, vaultId, check, data, audit, row, challenge, signing, slots } = toFields(parsed);
  const isValid =
    format === FORMAT &&
    typeof vaultId === 'string' &&
    VAULT_ID.test(vaultId) &&
    [check, row, challenge].every(isKey) &&
    isList(
      data,
      ({ id, key, createdAt }) => typeof id === 'string' && DATA_KEY_ID.test(id) && isKey(key) && isCount(createdAt),
    ) &&
    isList(audit, ({ fromSeq, key }) => isCount(fromSeq) && isKey(key)) &&
    isList(signing, ({ generation, seed }) => isCount(generation) && isKey(seed)) &&
    Array.isArray(slots) &&
    slots.every((id) => typeof id === 'string' && SLOT_ID.test(id));
  return isValid ? (parsed as KeysetDocument) : null;
}

type Fields = Readonly<Record<string, unknown>>;

function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function isKey(value: unknown): boolean {
  return typeof value === 'string' && decodeStrictBase64(value)?.length === KEY_BYTES;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Whether the value is a list of at least one item, each of which is valid. */
function isList(value: unknown, isValid: (item: Fields) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((item) => isValid(toFields(item)));
}

// The keyset with its keys in usable form. They are parsed once, when the keyset is opened or changes.

export interface SigningKey {
  /** The number of the key, from 1. Each rollback that the operator accepts adds one. */
  readonly generation: number;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

interface DataKey {
  /** 4 bytes, at the beginning of each value that the key encrypts. */
  readonly id: Uint8Array;
  readonly key: KeyObject;
}

export interface Keyring {
  readonly root: Uint8Array;
  readonly rootVersion: number;
  readonly version: number;
  readonly document: KeysetDocument;
  readonly newestDataKey: DataKey;
  readonly dataKeys: ReadonlyMap<number, KeyObject>;
  readonly audit: readonly AuditKey[];
  readonly row: KeyObject;
  readonly challenge: KeyObject;
  readonly signing: readonly SigningKey[];
}

const toKey = (text: string): KeyObject => createSecretKey(text, 'base64');
export const idNumber = (id: Uint8Array): number => Buffer.from(id.buffer, id.byteOffset, 4).readUInt32BE();
/** DER of a PKCS#8 private key of Ed25519, before the seed. SOURCE: RFC 8410. */
const SEED_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

function toSigningKey({ generation, seed }: KeysetDocument['signing'][number]): SigningKey {
  const der = Buffer.concat([SEED_PREFIX, Buffer.from(seed, 'base64')]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { generation, privateKey, publicKey: createPublicKey(privateKey) };
}

export function toKeyring(root: Uint8Array, rootVersion: number, version: number, document: KeysetDocument): Keyring {
  const data = document.data.map(({ id, key }) => ({ id: Buffer.from(id, 'hex'), key: toKey(key) }));
  const newestDataKey = data.at(-1);
  if (newestDataKey === undefined) throw new Error('the keyset has no data key');
  return {
    root,
    rootVersion,
    version,
    document,
    newestDataKey,
    dataKeys: new Map(data.map(({ id, key }) => [idNumber(id), key])),
    audit: document.audit.map(({ fromSeq, key }) => ({ fromSeq, key: toKey(key) })),
    row: toKey(document.row),
    challenge: toKey(document.challenge),
    signing: document.signing.map(toSigningKey),
  };
}

/** Opens the keyset with the slot of the private key; null if none does. */
export function openKeyring({ vaultId, keyset, slots }: StoredKeys, privateKey: KeyObject): Keyring | null {
  if (vaultId === null || keyset === null) return null;
  const publicKey = slotPublicKey(privateKey);
  for (const slot of slots) {
    if (slot.publicKey !== publicKey || slot.rootVersion !== keyset.rootVersion) continue;
    const root = unwrapRoot(slot, vaultId, privateKey);
    const document = root === null ? null : decryptKeyset(root, vaultId, keyset);
    // A replayed row of a removed slot opens nothing.
    if (root === null || document === null || !document.slots.includes(slot.id)) continue;
    return toKeyring(root, keyset.rootVersion, keyset.version, document);
  }
  return null;
}
