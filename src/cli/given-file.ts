/** Reads a file or a named pipe, such as a shell's <( ), up to a size limit. */

import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { type Bounds, readStream } from './standard-input.ts';

/** `called` names the file in messages. @throws UsageError when it cannot be read or is too long; the signal's reason */
export async function readGivenFile(path: string, called: string, bounds: Bounds): Promise<Buffer> {
  try {
    return await readStream(openWithoutWaiting(path), bounds);
  } catch (error) {
    if (bounds.signal.aborted || error instanceof UsageError) throw error;
    throw new UsageError(`${called} cannot be read${errnoSuffix(error)}`);
  }
}

/** WHY: a blocking read of a pipe occupies a thread, and the process cannot exit before it returns. */
function openWithoutWaiting(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
}
