/**
 * Signatures: Ed25519 keys, their checks outside the event loop, and the signature of a webhook's body.
 * SOURCE: RFC 8032, RFC 8410.
 */
import { createHmac, createPublicKey, generateKeyPair, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import { type PublicKey, parsePublicKeyText } from '../core/names.ts';
import { invalidRequest } from '../engine/errors.ts';
import { decodeStrictBase64 } from './primitives.ts';

const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** The bytes before the raw key in a SubjectPublicKeyInfo. SOURCE: RFC 8410, section 4. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * The points of small order, under which one signature can be valid for any message. The comparison ignores the sign
 * bit; `isCanonical` rejects the encodings that are not below the prime. SOURCE: eprint 2020/1244, table 3.
 */
const SMALL_ORDER = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
]);

const generate = promisify(generateKeyPair);

/** `privateKeyPem` is PKCS#8 in PEM, as `openssl pkeyutl -inkey` accepts it. */
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
 * Whether the curve has a point with this y coordinate: whether (y² - 1) / (dy² + 1) is a square. Checked for the
 * product of the two, which is a square if and only if their quotient is. SOURCE: RFC 8032, section 5.1.3; Euler's
 * criterion.
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

/**
 * @throws INVALID_REQUEST if the text is not base64 of 32 bytes, the point has small order, or it is not on the curve.
 */
export function parsePublicKey(text: string): PublicKey {
  const bytes = Buffer.from(parsePublicKeyText(text), 'base64');
  const withoutSign = Uint8Array.from(bytes);
  withoutSign[31] = (withoutSign[31] ?? 0) & 0x7f;
  if (!isCanonical(withoutSign) || SMALL_ORDER.has(Buffer.from(withoutSign).toString('hex'))) {
    throw invalidRequest(
      'public_key',
      'is not a usable Ed25519 key: the point has small order, or its encoding is not canonical',
    );
  }
  if (!isOnCurve(withoutSign)) throw invalidRequest('public_key', 'is not a point on the Ed25519 curve');
  return text as PublicKey;
}

/** Keys used recently, parsed: parsing one takes a fifth of the time of a signature check. */
const keyObjects = new LRUCache<PublicKey, KeyObject>({ max: 10_000 });

function toKeyObject(publicKey: PublicKey): KeyObject {
  const known = keyObjects.get(publicKey);
  if (known !== undefined) return known;
  const der = Buffer.concat([SPKI_PREFIX, Buffer.from(publicKey, 'base64')]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  keyObjects.set(publicKey, key);
  return key;
}

/**
 * A valid key whose private key is unknown. Signatures of unknown agents are checked with it, so that the check takes
 * as long.
 */
export const DUMMY_PUBLIC_KEY = Buffer.from(
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511b',
  'hex',
).toString('base64') as PublicKey;

export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Passes the permit to the first waiter.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/**
 * Two checks per thread of libuv's pool. The pool also runs the sync of each batch, which then waits for at most two
 * checks per thread, and not for every pending login.
 */
const verifySemaphore = new Semaphore(8);

/**
 * Checks in libuv's thread pool, not on the event loop. A signature of another length is invalid and takes the same
 * time.
 */
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

/** The public half of a private key in PEM; null for any other text. */
export function publicKeyOfPem(pem: string): PublicKey | null {
  try {
    const der = createPublicKey(pem).export({ format: 'der', type: 'spki' });
    return der.subarray(-PUBLIC_KEY_BYTES).toString('base64') as PublicKey;
  } catch {
    return null;
  }
}

// Signatures of webhooks. SOURCE: Standard Webhooks 1.0.0, "Signature scheme".

const PREFIX = 'whsec_';
const [MIN_BYTES, MAX_BYTES] = [24, 64];

/** The key in a secret of the form `whsec_<base64>`; null if it has another form, or a length other than 24 to 64. */
export function parseWebhookSecret(text: string): Uint8Array | null {
  const key = decodeStrictBase64(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text);
  return key !== null && key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : null;
}

/** The header `webhook-signature` of a message. */
export function webhookSignature(key: Uint8Array, id: string, timestampSeconds: number, body: string): string {
  const hmac = createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`);
  return `v1,${hmac.digest('base64')}`;
}
