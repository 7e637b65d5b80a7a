/** The keyset with its keys in the form in which they are used: parsed once, when the keyset is opened or changes. */
import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import type { StoredKeys } from '../core/keyset.ts';
import type { AuditKey } from './audit-keys.ts';
import { slotPublicKey, unwrapRoot } from './key-slots.ts';
import { type KeysetDocument, unsealKeyset } from './keyset.ts';

/** A key that signs checkpoints. */
export interface SigningKey {
  /** 1, 2, 3 …; a roll-back that the operator accepts starts the next one. */
  readonly generation: number;
  /** Ed25519. */
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

interface DataKey {
  /** 4 bytes, in front of each value sealed under the key. */
  readonly id: Uint8Array;
  readonly key: KeyObject;
}

/** The keyset with its keys in the form in which they are used. */
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
    const document = root === null ? null : unsealKeyset(root, vaultId, keyset);
    // A row that was kept and inserted again after its slot was removed opens nothing.
    if (root === null || document === null || !document.slots.includes(slot.id)) continue;
    return toKeyring(root, keyset.rootVersion, keyset.version, document);
  }
  return null;
}
