/** The key pairs of agents and operators on this machine. */
import { existsSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { LeaseholdError } from '../client/errors.ts';
import { parsePrivateKey } from '../client/signers.ts';
import { errnoSuffix, UsageError } from '../platform/errors.ts';
import { ensurePrivateDir, writePrivateFile } from '../platform/private-files.ts';
import type { Invocation } from './command.ts';
import { readInput } from './input.ts';
import type { Question } from './prompt.ts';
import { printNotice, type Terminal } from './terminal.ts';

/** Generates a key pair and writes the private key. @throws UsageError when the file exists or cannot be written */
async function makeKeyFile(path: string, { workingDirectory }: Terminal): Promise<NewKey> {
  const file = resolve(workingDirectory, path);
  if (existsSync(file)) {
    throw new UsageError(
      `${file} already exists`,
      `To register its key, use --public-key ${file}. To write a new key elsewhere, use --new-key FILE.`,
    );
  }
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  if (!('privateKey' in pair)) throw new Error('generateKey returned no key pair');
  const { privateKey, publicKey } = pair;
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', privateKey));
  const raw = Buffer.from(await crypto.subtle.exportKey('raw', publicKey));
  try {
    if (!existsSync(dirname(file))) ensurePrivateDir(dirname(file));
    writePrivateFile(file, `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`);
  } catch (error) {
    const code = errnoSuffix(error);
    if (code === '') throw error;
    throw new UsageError(`${file} cannot be written${code}`, 'To write it elsewhere, use --new-key FILE.');
  }
  return { publicKey: raw.toString('base64'), file };
}

const PUBLIC_PEM = /^-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----\s*$/;

/** The fixed base64 prefix encodes the name `ssh-ed25519` and both lengths. SOURCE: RFC 8709, section 4 */
const SSH = /^ssh-ed25519 (AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43})(?: [^\r\n]*)?\s*$/;
const KEY_BYTES = 32;

/**
 * Reads a key from a file or standard input (`-`) and returns base64 of the 32 bytes. Accepts PEM, base64, or a line of
 * `ssh-keygen`. Of a private key in PEM or OpenSSH format it returns the public half.
 * @throws UsageError, the signal's reason
 */
async function readPublicKey(question: Question, from: string): Promise<string> {
  const text = (await readInput(question, from, 1, '--public-key')).toString('latin1');
  if (/^[A-Za-z0-9+/]{43}=\s*$/.test(text)) return text.trim();
  const ssh = SSH.exec(text)?.[1];
  if (ssh !== undefined) return Buffer.from(ssh, 'base64').subarray(-KEY_BYTES).toString('base64');
  const privateKey = text.includes('PRIVATE KEY') ? parsePrivateKey(text) : null;
  if (privateKey !== null && 'problem' in privateKey)
    throw new UsageError(`--public-key: the key ${privateKey.problem}`);
  const [, body = ''] = PUBLIC_PEM.exec(text) ?? [];
  try {
    const key =
      privateKey === null
        ? await crypto.subtle.importKey('spki', Buffer.from(body, 'base64'), 'Ed25519', true, ['verify'])
        : await crypto.subtle.importKey('pkcs8', privateKey.pkcs8, 'Ed25519', true, ['sign']);
    const { x = '' } = await crypto.subtle.exportKey('jwk', key);
    return Buffer.from(x, 'base64url').toString('base64');
  } catch {
    throw new UsageError(
      '--public-key: must be an Ed25519 key in PEM, a line ssh-ed25519 …, or base64 of the 32 bytes of its public half',
      'To extract a public key: openssl pkey -in KEY.pem -pubout',
    );
  }
}

interface NewKey {
  /** Base64 of the 32 bytes. */
  readonly publicKey: string;
  /** Null if the key pair was made elsewhere. */
  readonly file: string | null;
}

/** The given key, or else a new one in a file. @throws UsageError */
export async function readOrMakeKey(invocation: Invocation, given: string | null, path: string): Promise<NewKey> {
  if (given !== null) return { publicKey: await readPublicKey(invocation, given), file: null };
  return makeKeyFile(path, invocation.terminal);
}

/**
 * Runs `work`, which sends the key to the server. If the server rejects it, no one needs the key file, and it is
 * removed. After any other error the key may be in use, and its file is kept.
 */
export async function withKeyFile(terminal: Terminal, file: string | null, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isRejected = error instanceof LeaseholdError && error.status !== null && error.status < 500;
    if (file !== null && isRejected) rmSync(file, { force: true });
    else if (file !== null) printNotice(terminal, `The new private key is in ${file}; the server may know it.`);
    throw error;
  }
}
