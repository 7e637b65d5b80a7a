/**
 * The encryption of a backup: zstd, then age. `age -d FILE | zstd -d` shows its records. The library is loaded when a
 * backup is written or read, so that a server that does neither has no memory for it. SOURCE: age-encryption.org/v1.
 */
import { constants as files } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import type { Identity, Recipient } from 'age-encryption';
import { errnoSuffix, UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { BackupError, damaged } from './errors.ts';

export type Lock =
  | { readonly kind: 'recipients'; readonly recipients: readonly string[] }
  | { readonly kind: 'passphrase'; readonly passphrase: Secret };

/** The keys that decrypt a backup. `key`: the key of a file that this process has just written. */
export type Opener =
  | { readonly kind: 'identities'; readonly identities: readonly Secret[] }
  | { readonly kind: 'passphrase'; readonly passphrase: Secret }
  | { readonly kind: 'key'; readonly identity: Identity };

export interface Encrypted {
  readonly bytes: ReadableStream<Uint8Array>;
  readonly opener: Opener;
}

const INTRO = 'age-encryption.org/v1\n';
const MAC_LINE = '\n--- ';
/** Enough for about a hundred recipients. */
const MAX_AGE_HEADER_BYTES = 64 * 1024;
const READ_BYTES = 256 * 1024;
// The fastest level: on rows of a log it is five times as fast as gzip, and its result is smaller.
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };

/** Call it before the backup is requested. @throws BackupError for a text that is not a recipient */
export async function checkRecipients(recipients: readonly string[]): Promise<void> {
  const { Encrypter } = await import('age-encryption');
  for (const recipient of recipients) addRecipient(new Encrypter(), recipient);
}

/** @throws BackupError for a text that is not a recipient */
export async function encrypt(plain: AsyncIterable<Uint8Array>, lock: Lock): Promise<Encrypted> {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  const opener = lock.kind === 'passphrase' ? lock : keepKey((recipient) => encrypter.addRecipient(recipient));
  if (lock.kind === 'passphrase') encrypter.setPassphrase(lock.passphrase.reveal());
  else for (const recipient of lock.recipients) addRecipient(encrypter, recipient);
  const compressed = pipeline(
    Readable.from(plain, { objectMode: false }),
    createZstdCompress(COMPRESSION),
    () => undefined,
  );
  return { bytes: await encrypter.encrypt(ReadableStream.from<Uint8Array>(compressed)), opener };
}

function addRecipient(encrypter: { addRecipient(recipient: string): void }, recipient: string): void {
  try {
    encrypter.addRecipient(recipient);
  } catch (cause) {
    throw new BackupError('A recipient is malformed: it must be an age recipient, age1….', { cause });
  }
}

/**
 * A recipient that adds nothing to the file and keeps its key in memory. WHY: the written file is read again and
 * decrypted, although this machine has no identity.
 */
function keepKey(add: (recipient: Recipient) => void): Opener {
  let kept: Uint8Array | null = null;
  add({
    wrapFileKey(key) {
      kept = key.slice();
      return [];
    },
  });
  return { kind: 'key', identity: { unwrapFileKey: () => kept } };
}

/** The records of the file, decrypted. @throws BackupError, an error of the system */
export async function* decryptFile(file: string, opener: Opener): AsyncGenerator<Uint8Array> {
  await using handle = await openFile(file);
  await checkAgeHeader(handle, file, opener);
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  if (opener.kind === 'passphrase') decrypter.addPassphrase(opener.passphrase.reveal());
  else if (opener.kind === 'key') decrypter.addIdentity(opener.identity);
  else for (const identity of opener.identities) decrypter.addIdentity(identity.reveal());
  try {
    const stored = handle.createReadStream({ start: 0, highWaterMark: READ_BYTES, autoClose: false });
    const compressed = await decrypter.decrypt(ReadableStream.from<Uint8Array>(stored));
    yield* pipeline(compressed, createZstdDecompress(), () => undefined);
  } catch (error) {
    throw describe(error, file, opener);
  }
}

async function openFile(file: string): Promise<FileHandle> {
  try {
    // A named pipe would otherwise wait for its writer.
    const handle = await open(file, files.O_RDONLY | files.O_NONBLOCK);
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
  } catch (error) {
    throw new BackupError(`${file} cannot be read${errnoSuffix(error)}.`);
  }
  throw new BackupError(`${file} is not a file.`);
}

/** Limits the header that the library reads, and reports the kind of key that the file needs. @throws BackupError */
async function checkAgeHeader(handle: FileHandle, file: string, { kind }: Opener): Promise<void> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_AGE_HEADER_BYTES), 0, MAX_AGE_HEADER_BYTES, 0);
  const text = buffer.toString('latin1', 0, bytesRead);
  const end = text.indexOf(MAC_LINE);
  if (!text.startsWith(INTRO) || end === -1)
    throw new BackupError(`${file} is not a backup, or its beginning is damaged.`);
  const needsPassphrase = text.slice(0, end).includes('\n-> scrypt ');
  if (kind === 'identities' && needsPassphrase) {
    throw new BackupError(`${file} is encrypted with a passphrase. Give --passphrase-file instead of --identity-file.`);
  }
  if (kind === 'passphrase' && !needsPassphrase) {
    throw new BackupError(`${file} is encrypted to recipients. Give --identity-file instead of --passphrase-file.`);
  }
}

const NO_KEY = /no identity matched/;

function describe(error: unknown, file: string, { kind }: Opener): unknown {
  if (error instanceof BackupError || (error instanceof Error && 'syscall' in error)) return error;
  if (!(error instanceof Error) || !NO_KEY.test(error.message)) return damaged('it does not authenticate', error);
  return new BackupError(
    kind === 'passphrase' ? `The passphrase does not open ${file}.` : `None of the identities opens ${file}.`,
  );
}

const RECIPIENT = /^age1[a-z0-9]+$/;
const IDENTITY = /^AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]+$/;
/** The length in code points. */
const MIN_PASSPHRASE_LENGTH = 12;

/** The public keys in a file: one per line, with comments after `#`. @throws UsageError */
export function parseRecipients(text: string, name: string): string[] {
  return linesOf(text, RECIPIENT, `${name}: each line must be an age recipient (age1…) or a comment`);
}

/** The private keys in a file, as `age-keygen` writes it. @throws UsageError */
export function parseIdentities(text: string, name: string): Secret[] {
  const rule = `${name}: each line must be an age identity (AGE-SECRET-KEY-1…) or a comment`;
  return linesOf(text, IDENTITY, rule).map((line) => new Secret(line));
}

/** The only line. @throws UsageError for several */
export function parsePassphrase(text: string, name: string): Secret {
  const passphrase = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(passphrase)) throw new UsageError(`${name}: must be one line`);
  return new Secret(passphrase);
}

/** Rejects a short passphrase, which the holder of the file could guess. @throws UsageError */
export function assertStrong(passphrase: Secret, name: string): void {
  if ([...passphrase.reveal()].length >= MIN_PASSPHRASE_LENGTH) return;
  throw new UsageError(`${name}: must have at least ${MIN_PASSPHRASE_LENGTH} characters`);
}

function linesOf(text: string, form: RegExp, rule: string): string[] {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length === 0 || !lines.every((line) => form.test(line))) throw new UsageError(rule);
  return lines;
}
