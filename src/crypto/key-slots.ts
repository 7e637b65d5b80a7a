/**
 * Wraps the root key for a slot. The slot's secret, 32 bytes, determines an X25519 key pair. The root key is encrypted
 * to the public key, so that a rotation of the root key needs no slot's secret. Layout: encapsulated key (32 bytes) |
 * ciphertext (32) | tag (16). SOURCE: RFC 9180, DHKEM(X25519, HKDF-SHA256); RFC 5869; docs/formats.md, "Keys".
 */
import {
  argon2,
  createPrivateKey,
  createPublicKey,
  decapsulate,
  encapsulate,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { promisify } from 'node:util';
import { invalidRequest } from '../engine/errors.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import type { KeySlot, SlotId, SlotParameters, VaultId, WrappedKeySlot } from '../vault/keys/keyset.ts';
import { decodeStrictBase64, decryptGcm, encryptGcm, GCM_NONCE_BYTES, KEY_BYTES, TAG_BYTES } from './primitives.ts';

const FORMAT = 'leasehold-slot-v1';
const PAIR_INFO = 'leasehold/v2/slot-pair';
const WRAP_INFO = 'leasehold/v2/slot-wrap';
/** DER of a PKCS#8 private key and of an SPKI public key of X25519, before the 32 bytes. SOURCE: RFC 8410. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

export function slotPrivateKey(secret: Uint8Array): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', PAIR_INFO, KEY_BYTES));
  return createPrivateKey({ key: Buffer.concat([PRIVATE_PREFIX, seed]), format: 'der', type: 'pkcs8' });
}

export function slotPublicKey(privateKey: KeyObject): string {
  const der = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return der.subarray(-KEY_BYTES).toString('base64');
}

/** Null if the text is not the base64 of 32 bytes. */
function toPublicKey(text: string): KeyObject | null {
  const bytes = decodeStrictBase64(text);
  if (bytes?.length !== KEY_BYTES) return null;
  return createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, bytes]), format: 'der', type: 'spki' });
}

/** Whether a root key can be encrypted to it: 32 bytes that are not a point of small order. */
export function isSlotPublicKey(text: string): boolean {
  const key = toPublicKey(text);
  if (key === null) return false;
  try {
    encapsulate(key);
    return true;
  } catch {
    return false;
  }
}

/** The key and the nonce of one wrapping. The shared key is fresh, so neither is ever used twice. */
function wrappingKey(sharedKey: Buffer): { readonly key: Buffer; readonly nonce: Buffer } {
  const bytes = Buffer.from(hkdfSync('sha256', sharedKey, '', WRAP_INFO, KEY_BYTES + GCM_NONCE_BYTES));
  return { key: bytes.subarray(0, KEY_BYTES), nonce: bytes.subarray(KEY_BYTES) };
}

function associatedBytes(vaultId: VaultId, id: SlotId, rootVersion: number): Buffer {
  return Buffer.from(JSON.stringify([FORMAT, vaultId, id, rootVersion]));
}

export function wrapRoot(slot: KeySlot, vaultId: VaultId, root: Uint8Array, rootVersion: number): WrappedKeySlot {
  const publicKey = toPublicKey(slot.publicKey);
  if (publicKey === null) throw new Error('the public key of a slot has another length');
  const { sharedKey, ciphertext: encapsulated } = encapsulate(publicKey);
  const { key, nonce } = wrappingKey(sharedKey);
  const encrypted = encryptGcm(key, nonce, associatedBytes(vaultId, slot.id, rootVersion), root);
  return { ...slot, rootVersion, sealedRoot: Buffer.concat([encapsulated, ...encrypted]) };
}

/** The root key. Null if the secret is not the slot's, or if the row was modified or belongs to another vault. */
export function unwrapRoot(slot: WrappedKeySlot, vaultId: VaultId, privateKey: KeyObject): Uint8Array | null {
  const { sealedRoot, id, rootVersion } = slot;
  if (sealedRoot.length !== 2 * KEY_BYTES + TAG_BYTES) return null;
  try {
    const { key, nonce } = wrappingKey(decapsulate(privateKey, sealedRoot.subarray(0, KEY_BYTES)));
    return decryptGcm(key, nonce, associatedBytes(vaultId, id, rootVersion), sealedRoot.subarray(KEY_BYTES));
  } catch {
    // A modified encapsulated key may be an invalid point.
    return null;
  }
}

// Derives a slot's secret from a passphrase, with Argon2id. The CLI computes it, so that a passphrase never reaches the
// server. SOURCE: RFC 9106; docs/keys.md contains the measured time.

const SALT_BYTES = 16;
/** SOURCE: RFC 9106, section 4, second recommended option, with one lane, because a login uses one core. */
export const PASSPHRASE_COST = { memory_kib: 64 * 1024, passes: 3, lanes: 1 } as const;
/**
 * WHY: the parameters may come from a modified row, or from a server that is not the vault's. They must not make a
 * command use all memory, or take an hour. Nor may they yield a secret from which the passphrase can be guessed
 * cheaply; the minimum is therefore the cost of a new slot.
 */
const MAX_COST = { memory_kib: 1024 * 1024, passes: 16, lanes: 16 } as const;

const derive = promisify(argon2);

export function newPassphraseParameters(): SlotParameters {
  return { salt: randomBytes(SALT_BYTES).toString('base64'), ...PASSPHRASE_COST };
}

interface PassphraseCost {
  readonly salt: Uint8Array;
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** @throws INVALID_REQUEST for parameters of another kind of slot, and for a cost outside the bounds */
export function parsePassphraseParameters(parameters: SlotParameters): PassphraseCost {
  const salt = decodeStrictBase64(String(parameters['salt']));
  if (salt?.length !== SALT_BYTES) throw invalidRequest('parameters.salt', `must be the base64 of ${SALT_BYTES} bytes`);
  return {
    salt,
    memory: parseCost(parameters, 'memory_kib'),
    passes: parseCost(parameters, 'passes'),
    parallelism: parseCost(parameters, 'lanes'),
  };
}

function parseCost(parameters: SlotParameters, name: keyof typeof MAX_COST): number {
  const value = Number(parameters[name]);
  const [min, max] = [PASSPHRASE_COST[name], MAX_COST[name]];
  if (Number.isSafeInteger(parameters[name]) && value >= min && value <= max) return value;
  throw invalidRequest(`parameters.${name}`, `must be an integer from ${min} to ${max}`);
}

/** The slot's secret; null for parameters of another kind of slot, and for a cost outside the bounds. */
export async function passphraseSecret(passphrase: Secret, parameters: SlotParameters): Promise<Uint8Array | null> {
  let cost: PassphraseCost;
  try {
    cost = parsePassphraseParameters(parameters);
  } catch {
    return null;
  }
  const { salt: nonce, ...costs } = cost;
  const message = passphrase.reveal().normalize('NFC');
  return derive('argon2id', { message, nonce, ...costs, tagLength: KEY_BYTES });
}
