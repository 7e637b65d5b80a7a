/**
 * Bounded reads of files and of standard input. A file that the user names may be a pipe, such as the `<(…)` of a
 * shell; a file that the program finds must be a regular file, and is never followed through a link.
 */
import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import type { Question } from './prompt.ts';

export interface Bounds {
  readonly maxBytes: number;
  /** Message for longer input. */
  readonly tooMuch: string;
  readonly signal: AbortSignal;
}

/** @throws UsageError `tooMuch` beyond `maxBytes`; the signal's reason when it aborts */
export function readStandardInput(
  { terminal: { stdin }, signal }: Question,
  maxBytes: number,
  tooMuch: string,
): Promise<Buffer> {
  return readStream(stdin, { maxBytes, tooMuch, signal });
}

/** @throws like `readStandardInput`, and errors of the stream */
async function readStream(stream: Readable, { maxBytes, tooMuch, signal }: Bounds): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Only destroying the stream ends a read that waits for data.
  const stop = (): void => void stream.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    for await (const chunk of stream) {
      const part = Buffer.from(chunk);
      bytes += part.length;
      if (bytes > maxBytes) throw new UsageError(tooMuch);
      chunks.push(part);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks);
}

/**
 * `called` names the file in messages: `the file of the value`. @throws UsageError when it cannot be read, or is too
 * long; the signal's reason
 */
export async function readGivenFile(path: string, called: string, bounds: Bounds): Promise<Buffer> {
  try {
    return await readStream(openWithoutBlocking(path), bounds);
  } catch (error) {
    if (bounds.signal.aborted || error instanceof UsageError) throw error;
    throw new UsageError(`${called} cannot be read${errnoSuffix(error)}`);
  }
}

const MAX_INPUT_MIB = 16;

/**
 * The file `from`, relative to the user's working directory, or standard input for `-`. @throws UsageError, the
 * signal's reason
 */
export function readInput(question: Question, from: string, maxMib = MAX_INPUT_MIB): Promise<Buffer> {
  const maxBytes = maxMib * 1024 * 1024;
  const tooMuch = `${inputName(from)}: is larger than ${maxMib} MiB`;
  if (from === '-') return readStandardInput(question, maxBytes, tooMuch);
  const { terminal, signal } = question;
  return readGivenFile(resolve(terminal.workingDirectory, from), `${from}:`, { maxBytes, tooMuch, signal });
}

/** @throws UsageError, the signal's reason */
export async function readTextInput(question: Question, from: string): Promise<string> {
  return decodeUtf8(await readInput(question, from), inputName(from));
}

/** As messages call it. */
export function inputName(from: string): string {
  return from === '-' ? 'standard input' : from;
}

/** The text without a byte order mark. @throws UsageError when the bytes are not UTF-8 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name}: is not text in UTF-8`, 'Convert it first, for example with iconv -t UTF-8.');
  }
}

/**
 * WHY: a thread that waits for a writer to open a pipe keeps the whole process from ending, whatever signals arrive.
 */
function openWithoutBlocking(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
}

/**
 * Opens the file itself, not the target of a link, and does not wait for the writer of a pipe. Rejects as `open` does.
 */
export function openDirectly(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}

/** `large`: it is larger than `maxBytes`. `other`: it is not a regular file. Rejects when it cannot be opened. */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer | 'large' | 'other'> {
  await using handle = await openDirectly(path);
  return await readHandle(handle, maxBytes);
}

/** As `readRegularFile`, from the beginning of an open file. */
export async function readHandle(handle: FileHandle, maxBytes: number): Promise<Buffer | 'large' | 'other'> {
  const status = await handle.stat();
  if (!status.isFile()) return 'other';
  if (status.size > maxBytes) return 'large';
  let buffer = Buffer.alloc(status.size + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) return buffer.subarray(0, length);
    length += bytesRead;
    if (length > maxBytes) return 'large';
    // The file grew while it was read.
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length, maxBytes + 1));
  }
}
