/**
 * The root key and the keys derived from it, one per purpose, so that a disclosed key works for its purpose only.
 * SOURCE: RFC 5869 (HKDF-SHA256, empty salt); docs/formats.md.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';

const PURPOSES = {
  seal: 'leasehold/v1/seal',
  audit: 'leasehold/v1/audit',
  challenge: 'leasehold/v1/challenge',
  row: 'leasehold/v1/row',
  check: 'leasehold/v1/check',
} as const;

export interface VaultKeys {
  /** Seals values. */
  readonly seal: KeyObject;
  /** The id of the sealing key in each sealed value: 4 bytes. */
  readonly sealKeyId: Uint8Array;
  /** Authenticates audit entries. An auditor may have it. */
  readonly audit: KeyObject;
  /** Authenticates challenges. */
  readonly challenge: KeyObject;
  /** Authenticates rows of agents, policies, sessions, credentials and idempotency records. */
  readonly row: KeyObject;
  /** Base64. The database holds it, so that a service with another root key is rejected there. */
  readonly checkValue: string;
}

const ROOT_KEY_BYTES = 32;

function derive(rootKey: Uint8Array, purpose: keyof typeof PURPOSES): KeyObject {
  return createSecretKey(new Uint8Array(hkdfSync('sha256', rootKey, '', PURPOSES[purpose], 32)));
}

export function deriveKeys(rootKey: Uint8Array): VaultKeys {
  const check = derive(rootKey, 'check');
  const seal = derive(rootKey, 'seal');
  return {
    seal,
    sealKeyId: createHmac('sha256', check).update('seal key id').digest().subarray(0, 4),
    audit: derive(rootKey, 'audit'),
    challenge: derive(rootKey, 'challenge'),
    row: derive(rootKey, 'row'),
    checkValue: createHmac('sha256', check).update('root key check').digest('base64'),
  };
}

/** Base64 of the audit key, for an auditor. */
export function exportAuditKey(keys: VaultKeys): string {
  return keys.audit.export().toString('base64');
}

/** The inverse of `exportAuditKey`. */
export function importAuditKey(text: string): VaultKeys['audit'] {
  return createSecretKey(text, 'base64');
}

/** The 32 bytes of a root key file: base64, with or without one line break. Null for any other text. */
export function parseRootKey(text: string): Uint8Array | null {
  const bytes = decodeStrictBase64(text.replace(/\r?\n$/, ''));
  return bytes?.length === ROOT_KEY_BYTES ? bytes : null;
}

/** Decodes strict base64. Null if the text does not re-encode to itself. */
export function decodeStrictBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** Whether two texts are equal, in constant time for texts of the same length. */
export function timingSafeEqualText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
