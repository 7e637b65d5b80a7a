/**
 * Encryption of values with AES-256-GCM. Layout: format version (1 byte, 1) | key id (4) | nonce (12) | ciphertext |
 * tag (16). The associated data is format version, key id, and JSON of credential id, path, type and version. SOURCE:
 * NIST SP 800-38D, which allows 2^32 values under a key with random nonces; docs/formats.md.
 */
import { hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { type AssociatedData, type EncryptedValue, Secret } from '../vault/credentials/credential.ts';
import { decryptGcm, encryptGcm, GCM_NONCE_BYTES, KEY_BYTES, TAG_BYTES } from './primitives.ts';
import type { VaultKeys } from './vault-keys.ts';

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

export function encryptValue(keys: VaultKeys, value: Secret, bound: AssociatedData): EncryptedValue {
  const header = Buffer.from([FORMAT_VERSION, ...keys.currentDataKeyId]);
  const nonce = randomBytes(GCM_NONCE_BYTES);
  const encrypted = encryptGcm(keys.currentDataKey, nonce, associatedBytes(header, bound), value.reveal());
  return Buffer.concat([header, nonce, ...encrypted]);
}

/** The id of the data key that encrypted the value, in hexadecimal. */
export function dataKeyIdOf(encrypted: EncryptedValue): string {
  return Buffer.from(encrypted.subarray(1, HEADER_BYTES)).toString('hex');
}

/**
 * Null if the value does not authenticate: it was modified, copied from another row, or has another format or another
 * key.
 */
export function decryptValue(keys: VaultKeys, encrypted: EncryptedValue, bound: AssociatedData): Secret | null {
  if (encrypted.length < HEADER_BYTES + GCM_NONCE_BYTES + TAG_BYTES || encrypted[0] !== FORMAT_VERSION) return null;
  const header = encrypted.subarray(0, HEADER_BYTES);
  const key = keys.dataKey(header.subarray(1));
  if (key === null) return null;
  const nonce = encrypted.subarray(HEADER_BYTES, HEADER_BYTES + GCM_NONCE_BYTES);
  const ciphertext = encrypted.subarray(HEADER_BYTES + GCM_NONCE_BYTES);
  const plain = decryptGcm(key, nonce, associatedBytes(header, bound), ciphertext);
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

export function decryptApprovalRequest(rowKey: KeyObject, id: string, encrypted: Uint8Array): string | null {
  return decryptGcm(requestKey(rowKey, id), NONCE, NOTHING, encrypted)?.toString('utf8') ?? null;
}

function requestKey(rowKey: KeyObject, id: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', rowKey, '', `leasehold-approval-request-v1:${id}`, KEY_BYTES));
}
