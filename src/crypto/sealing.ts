/**
 * Encryption of values with AES-256-GCM. Layout: format version (1 byte, 1) | key id (4) | nonce (12) | ciphertext |
 * tag (16). The associated data is format version, key id, and JSON of credential id, path, type and version. SOURCE:
 * NIST SP 800-38D, which allows 2^32 values under a key with random nonces; docs/formats.md.
 */
import { hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { type AssociatedData, type Sealed, Secret } from '../vault/credentials/credential.ts';
import type { VaultKeys } from './keys.ts';
import { decryptGcm, encryptGcm, GCM_NONCE_BYTES, KEY_BYTES, TAG_BYTES } from './primitives.ts';

const FORMAT_VERSION = 1;
const HEADER_BYTES = 5;

/** Replaced by the header after encoding. */
const HEADER_PLACEHOLDER = '\0'.repeat(HEADER_BYTES);

function associatedBytes(header: Uint8Array, bound: AssociatedData): Buffer {
  const text = JSON.stringify(['leasehold-value-v1', bound.credentialId, bound.path, bound.type, bound.version]);
  const bytes = Buffer.from(HEADER_PLACEHOLDER + text);
  bytes.set(header);
  return bytes;
}

export function seal(keys: VaultKeys, value: Secret, bound: AssociatedData): Sealed {
  const header = Buffer.from([FORMAT_VERSION, ...keys.sealKeyId]);
  const nonce = randomBytes(GCM_NONCE_BYTES);
  const encrypted = encryptGcm(keys.seal, nonce, associatedBytes(header, bound), value.reveal());
  return Buffer.concat([header, nonce, ...encrypted]);
}

/** The id of the data key that encrypted the value, in hexadecimal. */
export function dataKeyIdOf(sealed: Sealed): string {
  return Buffer.from(sealed.subarray(1, HEADER_BYTES)).toString('hex');
}

/**
 * Null if the value does not authenticate: it was modified, copied from another row, or has another format or another
 * key.
 */
export function decrypt(keys: VaultKeys, sealed: Sealed, bound: AssociatedData): Secret | null {
  if (sealed.length < HEADER_BYTES + GCM_NONCE_BYTES + TAG_BYTES || sealed[0] !== FORMAT_VERSION) return null;
  const header = sealed.subarray(0, HEADER_BYTES);
  const key = keys.dataKey(header.subarray(1));
  if (key === null) return null;
  const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + GCM_NONCE_BYTES);
  const encrypted = sealed.subarray(HEADER_BYTES + GCM_NONCE_BYTES);
  const plain = decryptGcm(key, nonce, associatedBytes(header, bound), encrypted);
  return plain === null ? null : new Secret(plain.toString('utf8'));
}

// Encrypts the request that an operator is asked to approve. Each request has its own key, derived from the key of rows
// and its id, so that no key encrypts twice. SOURCE: docs/formats.md, "Approvals"; RFC 5869; NIST SP 800-38D.

/** One message per key, so that the nonce may be constant. */
const NONCE = Buffer.alloc(GCM_NONCE_BYTES);
const NOTHING = new Uint8Array();

export function encryptApprovalRequest(rowKey: KeyObject, id: string, text: string): Uint8Array {
  return Buffer.concat(encryptGcm(requestKey(rowKey, id), NONCE, NOTHING, text));
}

export function decryptApprovalRequest(rowKey: KeyObject, id: string, sealed: Uint8Array): string | null {
  return decryptGcm(requestKey(rowKey, id), NONCE, NOTHING, sealed)?.toString('utf8') ?? null;
}

function requestKey(rowKey: KeyObject, id: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rowKey, '', `leasehold-approval-request-v1:${id}`, KEY_BYTES));
}
