/** A file that somebody named, or a pipe in its place, as a shell's <( ): no more of it than there may be. */

import { constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { type Bounds, readStream } from './standard-input.ts';

/** `called` is what it is, for messages: `the file of the value`. @throws UsageError where it cannot be read, or is too long; the signal's reason */
export async function readGivenFile(path: string, called: string, bounds: Bounds): Promise<Buffer> {
  try {
    return await readStream(openWithoutWaiting(path), bounds);
  } catch (error) {
    if (bounds.signal.aborted || error instanceof UsageError) throw error;
    throw new UsageError(`${called} cannot be read${errnoSuffix(error)}`);
  }
}

/** WHY: a thread that waits for somebody to write into a pipe keeps the whole process from ending, whatever signals come. */
function openWithoutWaiting(path: string): Readable {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return fstatSync(fd).isFIFO() ? new Socket({ fd, readable: true, writable: false }) : createReadStream('', { fd });
}
