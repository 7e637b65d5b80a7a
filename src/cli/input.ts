/**
 * Bounded reads of files and of standard input. A file that the user names may be a pipe, such as the `<(…)` of a
 * shell. A file that the program finds must be a regular file, and is never followed through a link.
 */
import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { resolve } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { errnoSuffix, UsageError } from '../platform/errors.ts';
import type { Question } from './prompt.ts';

const MAX_INPUT_MIB = 16;

/**
 * Reads the file `from`, relative to the user's working directory, or standard input for `-`. Messages call it `name`.
 * @throws UsageError when it cannot be read or is too long; the signal's reason
 */
export async function readInput(
  { terminal, signal }: Question,
  from: string,
  maxMib = MAX_INPUT_MIB,
  name = inputName(from),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    const stream = from === '-' ? terminal.stdin : openWithoutBlocking(resolve(terminal.workingDirectory, from));
    // Only destroying the stream ends a read that waits for data.
    for await (const chunk of addAbortSignal(signal, stream)) {
      const part = Buffer.from(chunk);
      bytes += part.length;
      if (bytes > maxMib * 1024 * 1024) throw new UsageError(`${name}: is larger than ${maxMib} MiB`);
      chunks.push(part);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof UsageError ? error : new UsageError(`${name}: cannot be read${errnoSuffix(error)}`);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks);
}

/** @throws UsageError, the signal's reason */
export async function readTextInput(question: Question, from: string): Promise<string> {
  return decodeUtf8(await readInput(question, from), inputName(from));
}

export function inputName(from: string): string {
  return from === '-' ? 'standard input' : from;
}

/** The text without a byte order mark, unless `keepsMark`. @throws UsageError when the bytes are not UTF-8 */
export function decodeUtf8(bytes: Uint8Array, name: string, keepsMark = false): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes);
  } catch {
    const hint = 'Convert it first, for example with iconv -t UTF-8, or encode it with base64.';
    throw new UsageError(`${name}: is not text in UTF-8`, hint);
  }
}

/** WHY: a thread that waits for a writer to open a pipe prevents the process from ending, whatever signals arrive. */
function openWithoutBlocking(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
}

/**
 * Opens the file itself, not the target of a link, and does not wait for the writer of a pipe. Rejects with the errors
 * of `open`.
 */
export function openDirectly(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}

/**
 * Resolves to `large` if the file is larger than `maxBytes`, and to `other` if it is not a regular file. Rejects when
 * it cannot be opened.
 */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer | 'large' | 'other'> {
  await using handle = await openDirectly(path);
  return await readHandle(handle, maxBytes);
}

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
