/** Digests, strict base64, comparison in constant time, authenticated encryption, certificates, and random ids. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  hash,
  type KeyObject,
  randomBytes,
  randomUUIDv7,
  timingSafeEqual,
  X509Certificate,
} from 'node:crypto';

/** The length of every symmetric key of a vault, of the root key, and of the secret of a slot. */
export const KEY_BYTES = 32;

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

const GCM = 'aes-256-gcm';
export const GCM_NONCE_BYTES = 12;
/** The length of the tag behind a ciphertext of AES-256-GCM. */
export const TAG_BYTES = 16;

/** AES-256-GCM. Returns the ciphertext and its tag. SOURCE: NIST SP 800-38D. */
export function encryptGcm(
  key: KeyObject | Uint8Array,
  nonce: Uint8Array,
  associated: Uint8Array,
  plain: Uint8Array | string,
): readonly Uint8Array[] {
  const cipher = createCipheriv(GCM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associated);
  const ciphertext = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain);
  cipher.final();
  return [ciphertext, cipher.getAuthTag()];
}

/** Decrypts a ciphertext with its tag behind it; null if it does not authenticate. */
export function decryptGcm(
  key: KeyObject | Uint8Array,
  nonce: Uint8Array,
  associated: Uint8Array,
  encrypted: Uint8Array,
): Buffer | null {
  if (encrypted.length < TAG_BYTES) return null;
  const decipher = createDecipheriv(GCM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated);
  decipher.setAuthTag(encrypted.subarray(-TAG_BYTES));
  const plain = decipher.update(encrypted.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return plain;
}

export class Sha256 {
  readonly #hash = createHash('sha256');

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** The digest in hexadecimal. No data can be added afterwards. */
  hex(): string {
    return this.#hash.digest('hex');
  }
}

export function sha256Base64(text: string): string {
  return hash('sha256', text, 'base64');
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Whether the text has one or more certificates, and each of them can be parsed. */
export function hasCertificates(pem: string): boolean {
  const blocks = pem.match(CERTIFICATE) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}

// Random ids and keys. Row ids are ordered by time (UUIDv7), so that rows are appended to a table's end.
// SOURCE: RFC 9562.

export const newId = (): string => randomUUIDv7();

/**
 * Returns a generator of request ids: eight random characters per process, then a counter. Clients never choose them.
 */
export function requestIds(): () => string {
  const prefix = randomBytes(5).toString('hex').slice(0, 8);
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}

export function newRootKey(): Uint8Array {
  return randomBytes(32);
}

/** 16 bytes as base64url. */
export const newNonce = (): string => randomBytes(16).toString('base64url');
