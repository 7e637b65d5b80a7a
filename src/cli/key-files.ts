/** Agents' keys in files: made here, or read to be registered. */

import { existsSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parsePrivateKey } from '../client/key-formats.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { ensurePrivateDir, writePrivateFile } from '../platform/private-files.ts';
import { readGivenFile } from './given-file.ts';
import type { Question } from './prompt.ts';
import { readStandardInput } from './standard-input.ts';
import type { Terminal } from './terminal.ts';

export interface MadeKey {
  /** Base64 of its 32 bytes. */
  readonly publicKey: string;
  /** Null where it was given. */
  readonly file: string | null;
  /** For a registration that failed. */
  remove(): void;
}

/** A new pair; the private half is written to the file. @throws UsageError where there is one already, or it cannot be written */
export async function makeKeyFile(path: string, { folder }: Terminal): Promise<MadeKey> {
  const file = resolve(folder, path);
  if (existsSync(file)) {
    throw new UsageError(
      `${file} is there already`,
      `--public-key ${file} registers the key in it; --new-key FILE writes a new one elsewhere.`,
    );
  }
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  if (!('privateKey' in pair)) throw new Error('Ed25519 has pairs');
  const { privateKey, publicKey } = pair;
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', privateKey));
  const raw = Buffer.from(await crypto.subtle.exportKey('raw', publicKey));
  try {
    if (!existsSync(dirname(file))) ensurePrivateDir(dirname(file));
    writePrivateFile(file, `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`);
  } catch (error) {
    const code = errnoSuffix(error);
    if (code === '') throw error;
    throw new UsageError(`${file} cannot be written${code}`, '--new-key FILE writes it elsewhere.');
  }
  return { publicKey: raw.toString('base64'), file, remove: () => rmSync(file, { force: true }) };
}

const PUBLIC_PEM = /^-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----\s*$/;

/** What base64 makes of the name `ssh-ed25519` and both lengths is always the same. SOURCE: RFC 8709, section 4 */
const SSH = /^ssh-ed25519 (AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43})(?: [^\r\n]*)?\s*$/;
const KEY_BYTES = 32;
const MOST_KEY_BYTES = 16 * 1024;

/**
 * Of a file, or of standard input (`-`); base64 of its 32 bytes. PEM, that base64, or a line as `ssh-keygen` writes it; a
 * private key in PEM or of OpenSSH gives its public half, and stays here.
 * @throws UsageError, the signal's reason
 */
export async function readPublicKey(question: Question, from: string): Promise<string> {
  const text = from === '-' ? await readPiped(question) : await readText(question, from);
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
      'openssl pkey -in KEY.pem -pubout writes it.',
    );
  }
}

async function readPiped(question: Question): Promise<string> {
  const bytes = await readStandardInput(question, MOST_KEY_BYTES, '--public-key: standard input holds no public key');
  return bytes.toString('latin1');
}

async function readText({ terminal, signal }: Question, from: string): Promise<string> {
  const called = '--public-key: the file';
  const bounds = { mostBytes: MOST_KEY_BYTES, tooMuch: `${called} holds no public key`, signal };
  return (await readGivenFile(resolve(terminal.folder, from), called, bounds)).toString('latin1');
}
