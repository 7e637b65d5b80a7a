/**
 * Signers of challenges: a key file, a key in memory, or a function of the caller, so that a key can stay in an HSM or
 * in ssh-agent. They use only Web Cryptography, which Node, Bun, Deno and browsers provide. Keys are PKCS#8 in PEM, as
 * openssl writes it, or OpenSSH, as ssh-keygen writes it. Encrypted keys are rejected: a program cannot enter a
 * passphrase. SOURCE: RFC 8410, section 7; OpenSSH, PROTOCOL.key
 */
import { LeaseholdError } from './errors.ts';

/** Returns the Ed25519 signature, 64 bytes, of the nonce. */
export type Signer = (nonce: Uint8Array<ArrayBuffer>) => Promise<Uint8Array> | Uint8Array;

const MAX_KEY_BYTES = 16 * 1024;

/**
 * `key`: PKCS#8 in PEM (`openssl genpkey -algorithm ed25519`), an OpenSSH key (`ssh-keygen -t ed25519`), or a Web
 * Cryptography key.
 */
export function keySigner(key: string | CryptoKey): Signer {
  let imported: Promise<CryptoKey> | null = null;
  return async (nonce) => {
    imported ??= typeof key === 'string' ? importKey(key) : Promise.resolve(key);
    try {
      return new Uint8Array(await crypto.subtle.sign('Ed25519', await imported, nonce));
    } catch (error) {
      throw error instanceof LeaseholdError ? error : badKey('the key cannot sign with Ed25519', error);
    }
  };
}

/** Reads the key from a file at each login, so that it can be replaced. Not in browsers. */
export function fileSigner(file: string): Signer {
  return async (nonce) => {
    let pem: string;
    try {
      pem = await readStart(file);
    } catch (error) {
      throw badKey(`the key file ${file} cannot be read`, error);
    }
    return keySigner(pem)(nonce);
  };
}

/** Reads at most MAX_KEY_BYTES: no key is longer. WHY `getBuiltinModule`: see node-fetch.ts. */
async function readStart(file: string): Promise<string> {
  const { createReadStream } = globalThis.process.getBuiltinModule('node:fs');
  const chunks = await createReadStream(file, { encoding: 'latin1', end: MAX_KEY_BYTES - 1 }).toArray();
  return chunks.join('');
}

async function importKey(text: string): Promise<CryptoKey> {
  const parsed = parsePrivateKey(text);
  if ('problem' in parsed) throw badKey(`the key ${parsed.problem}`);
  try {
    return await crypto.subtle.importKey('pkcs8', parsed.pkcs8, 'Ed25519', false, ['sign']);
  } catch (error) {
    throw badKey('the key is not an Ed25519 key', error);
  }
}

function badKey(message: string, cause?: unknown): LeaseholdError {
  return new LeaseholdError('BAD_KEY', message, { cause });
}

const PKCS8 = /^\s*-----BEGIN PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PRIVATE KEY-----\s*$/;
const OPENSSH =
  /^\s*-----BEGIN OPENSSH PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END OPENSSH PRIVATE KEY-----\s*$/;
/** DER header of PKCS#8, which precedes the 32 bytes of an Ed25519 key. */
const DER_PREFIX = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const SEED_BYTES = 32;

export type ParsedKey = { readonly pkcs8: Uint8Array<ArrayBuffer> } | { readonly problem: string };

export function parsePrivateKey(text: string): ParsedKey {
  const [, pem] = PKCS8.exec(text) ?? [];
  const [, ssh] = OPENSSH.exec(text) ?? [];
  const body = pem ?? ssh;
  if (body === undefined) return { problem: 'must be PKCS#8 in PEM or an OpenSSH key, without a passphrase' };
  try {
    const bytes = fromBase64(body.replaceAll(/\s/g, ''));
    return pem === undefined ? parseOpenSsh(new Fields(bytes)) : { pkcs8: bytes };
  } catch {
    return { problem: 'is damaged' };
  }
}

/** @throws RangeError for truncated data */
function parseOpenSsh(outer: Fields): ParsedKey {
  if (outer.text(15) !== 'openssh-key-v1\0') return { problem: 'is damaged' };
  const cipher = outer.text();
  if (cipher !== 'none') return { problem: 'has a passphrase; use ssh-agent, or remove it with ssh-keygen -p' };
  outer.text(); // name and options of the key derivation, empty without a passphrase
  outer.text();
  if (outer.number() !== 1) return { problem: 'must be one key' };
  outer.text(); // the public key
  const inner = new Fields(outer.bytes());
  const [check, repeated] = [inner.number(), inner.number()];
  if (check !== repeated) return { problem: 'is damaged' };
  if (inner.text() !== 'ssh-ed25519') return { problem: 'is not an Ed25519 key' };
  inner.text(); // the public key again
  const both = inner.bytes();
  if (both.length !== 2 * SEED_BYTES) return { problem: 'is damaged' };
  return { pkcs8: Uint8Array.from([...DER_PREFIX, ...both.subarray(0, SEED_BYTES)]) };
}

/** Reads SSH's length-prefixed fields in order. @throws RangeError beyond the end */
class Fields {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  number(): number {
    const { buffer, byteOffset, byteLength } = this.#bytes;
    const value = new DataView(buffer, byteOffset, byteLength).getUint32(this.#at);
    this.#at += 4;
    return value;
  }

  bytes(length = this.number()): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError('the key is truncated');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  text(length = this.number()): string {
    return new TextDecoder('latin1').decode(this.bytes(length));
  }
}

/** WHY not Buffer: browsers do not provide it. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** @throws DOMException for invalid base64 */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
