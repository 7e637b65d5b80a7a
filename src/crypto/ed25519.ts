/** Ed25519 keys and signatures. SOURCE: RFC 8032, RFC 8410. */
import { createPublicKey, generateKeyPair, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { PublicKey } from '../core/agent.ts';
import { invalidRequest } from '../core/errors.ts';
import { FifoCache } from '../core/fifo-cache.ts';
import { decodeStrictBase64 } from './keys.ts';
import { Semaphore } from './semaphore.ts';

const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** What stands before the raw key in a SubjectPublicKeyInfo. SOURCE: RFC 8410, section 4. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * The points of small order: signatures under them hold for anything. The sign bit is left out of the comparison; those
 * whose coordinate is not below the prime are refused by `isCanonical`. SOURCE: eprint 2020/1244, table 3.
 */
const SMALL_ORDER = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

const generate = promisify(generateKeyPair);

/** `privateKeyPem` is PKCS#8 in PEM, as `openssl pkeyutl -inkey` takes it. */
export async function generateAgentKeys(): Promise<{ publicKey: PublicKey; privateKeyPem: string }> {
  const pair = await generate('ed25519');
  const raw = pair.publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length);
  return {
    publicKey: raw.toString('base64') as PublicKey,
    privateKeyPem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Whether the y coordinate is below 2^255 - 19. */
function isCanonical(bytes: Uint8Array): boolean {
  const isTopFull = (bytes[31] ?? 0) === 0x7f && bytes.subarray(1, 31).every((byte) => byte === 0xff);
  return !(isTopFull && (bytes[0] ?? 0) >= 0xed);
}

const PRIME = 2n ** 255n - 19n;
/** The curve's constant: -121665 / 121666. */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/**
 * Whether some x belongs to the y coordinate: (y² - 1) / (dy² + 1) has a square root. Decided for the product of the two, which is
 * a square if and only if their quotient is. SOURCE: RFC 8032, section 5.1.3; Euler's criterion.
 */
function isOnCurve(withoutSign: Uint8Array): boolean {
  const y = BigInt(`0x${Buffer.from(withoutSign).reverse().toString('hex')}`);
  let base = ((y * y - 1n) * (D * y * y + 1n)) % PRIME;
  let power = 1n;
  for (let exponent = (PRIME - 1n) / 2n; exponent > 0n; exponent >>= 1n) {
    if ((exponent & 1n) === 1n) power = (power * base) % PRIME;
    base = (base * base) % PRIME;
  }
  return power === 1n;
}

/** @throws INVALID_REQUEST for what is not base64 of 32 bytes, for points of small order, and for no point of the curve. */
export function parsePublicKey(text: string): PublicKey {
  const bytes = decodeStrictBase64(text);
  if (bytes?.length !== PUBLIC_KEY_BYTES)
    throw invalidRequest('public_key', 'must be base64 of the 32 raw bytes of an Ed25519 key');
  const withoutSign = Uint8Array.from(bytes);
  withoutSign[31] = (withoutSign[31] ?? 0) & 0x7f;
  if (!isCanonical(withoutSign) || SMALL_ORDER.has(Buffer.from(withoutSign).toString('hex'))) {
    throw invalidRequest(
      'public_key',
      'is not a usable Ed25519 key: a point of small order, or not in its one spelling',
    );
  }
  if (!isOnCurve(withoutSign)) throw invalidRequest('public_key', 'is not a point of the curve Ed25519');
  return text as PublicKey;
}

/** Of keys that were used lately: to read one costs a fifth of a signature's check. */
const keyObjects = new FifoCache<PublicKey, KeyObject>();
const MAX_KEY_OBJECTS = 10_000;

function toKeyObject(publicKey: PublicKey): KeyObject {
  const known = keyObjects.get(publicKey);
  if (known !== undefined) return known;
  const der = Buffer.concat([SPKI_PREFIX, Buffer.from(publicKey, 'base64')]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  keyObjects.put(publicKey, key);
  if (keyObjects.size > MAX_KEY_OBJECTS) keyObjects.evictOldest();
  return key;
}

/** A key that nobody holds, for checking what claims to be from nobody: it costs the same. */
export const DUMMY_PUBLIC_KEY = Buffer.from(
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511b',
  'hex',
).toString('base64') as PublicKey;

/**
 * Two for each thread of the pool: all are busy, and a turn's sync, which is done there too, waits for two checks and not for
 * all of a crowd's.
 */
const verifySemaphore = new Semaphore(8);

/** Checks off the loop, in Node's thread pool. A signature of another length is not valid. */
export function isSignatureValid(publicKey: PublicKey, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const isLengthRight = signature.length === SIGNATURE_BYTES;
  const checked = isLengthRight ? signature : new Uint8Array(SIGNATURE_BYTES);
  const check = (): Promise<boolean> =>
    new Promise((resolve) => {
      verify(null, message, toKeyObject(publicKey), checked, (error, isValid) =>
        resolve(error === null && isValid && isLengthRight),
      );
    });
  return verifySemaphore.run(check);
}
