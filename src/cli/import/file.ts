/** The file that is imported: read once, whole, no larger than its bound, and as UTF-8 or not at all. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoSuffix } from '../../platform/errno.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Question } from '../prompt.ts';
import { readStandardInput } from '../standard-input.ts';

const MOST_BYTES = 64 * 1024 * 1024;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** @throws UsageError where it can't be read, is no file, or is larger than 64 MiB */
export async function readSourceFile(file: string): Promise<Uint8Array> {
  try {
    // WHY without waiting: a pipe that nobody writes into would be opened for ever.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const status = await handle.stat();
    if (!status.isFile()) throw new UsageError(`${file}: is no file`);
    if (status.size > MOST_BYTES) throw tooLarge(file);
    // WHY not readFile: a file can grow while it is read.
    const bytes = new Uint8Array(status.size + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, null);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
      if (length === bytes.length) throw new UsageError(`${file}: was written to while it was read; try again`);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file}: cannot be read${errnoSuffix(error)}`);
  }
}

/** Standard input, within the same bound. @throws UsageError, the signal's reason */
export function readPiped(question: Question): Promise<Uint8Array> {
  return readStandardInput(question, MOST_BYTES, tooLarge('standard input').message);
}

/** Without the mark of byte order. @throws UsageError for what is no UTF-8 */
export function decode(bytes: Uint8Array, name: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new UsageError(`${name}: is no UTF-8`, 'Convert it first, such as with iconv -t UTF-8.');
  }
}

function tooLarge(file: string): UsageError {
  return new UsageError(`${file}: is larger than ${MOST_BYTES / 1024 / 1024} MiB`);
}
