/**
 * How an agent signs: with a key file, a key in memory, or whatever the caller brings, so that a key may stay in an HSM or an agent
 * of SSH. Web Cryptography alone, which Node, Bun, Deno and browsers have.
 */
import { fromBase64 } from './base64.ts';
import { LeaseholdError } from './errors.ts';

/** Answers the Ed25519 signature, 64 bytes, over the nonce as it is given. */
export type Signer = (nonce: Uint8Array<ArrayBuffer>) => Promise<Uint8Array> | Uint8Array;

const MOST_KEY_BYTES = 16 * 1024;
const PEM = /^-----BEGIN PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PRIVATE KEY-----\s*$/;

/** A private key as PKCS#8 in PEM, as `openssl genpkey -algorithm ed25519` writes it, or as a key of Web Cryptography. */
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

/**
 * The key in a file, read at each login, so that it can be exchanged. Not in browsers. WHY not an import: what puts programs together
 * for browsers follows every import, and fails at a module of Node's.
 */
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

/** What is longer than any key is none: no more of it is read. */
async function readStart(file: string): Promise<string> {
  const handle = await globalThis.process.getBuiltinModule('node:fs/promises').open(file);
  try {
    const bytes = new Uint8Array(MOST_KEY_BYTES);
    let length = 0;
    for (let read = -1; read !== 0; length += read) {
      read = (await handle.read(bytes, length, MOST_KEY_BYTES - length, null)).bytesRead;
    }
    return new TextDecoder('latin1').decode(bytes.subarray(0, length));
  } finally {
    await handle.close();
  }
}

async function importKey(pem: string): Promise<CryptoKey> {
  const [, body] = PEM.exec(pem) ?? [];
  if (body === undefined) throw badKey('the key must be PKCS#8 in PEM, unencrypted: -----BEGIN PRIVATE KEY-----');
  try {
    return await crypto.subtle.importKey('pkcs8', fromBase64(body.replaceAll(/\s/g, '')), 'Ed25519', false, ['sign']);
  } catch (error) {
    throw badKey('the key is no Ed25519 key', error);
  }
}

function badKey(message: string, cause?: unknown): LeaseholdError {
  return new LeaseholdError('BAD_KEY', message, { cause });
}
