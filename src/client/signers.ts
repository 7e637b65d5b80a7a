/**
 * Signers of an agent's challenges: a key file, a key in memory, or a function of the caller, so that a key can stay in
 * an HSM or in ssh-agent. They use only Web Cryptography, which Node, Bun, Deno and browsers provide.
 */
import { LeaseholdError } from './errors.ts';
import { parsePrivateKey } from './key-formats.ts';

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
