/**
 * A real pipe to a program. WHY: what Node makes of `pipe` is a pair of sockets, which programs can't open as /dev/stdout, and on which
 * they see a reset connection where a closed pipe would have ended them. Nothing of it is left in the file system once it is open.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { PrivateFiles } from './value-files.ts';

export interface Fifo {
  /** To be handed to the program, and closed with `handOver` afterwards. */
  readonly writeEnd: number;
  readonly readEnd: Readable;
  /** Closes our copy of the write end: the reader then ends when the program's does. */
  closeWriteEnd(): void;
}

/** In a directory that goes away with its files; null where the system can't. */
export function makeFifo({ directory }: PrivateFiles, name: string): Fifo | null {
  const path = join(directory, name);
  const made = spawnSync('mkfifo', ['-m', '600', path], { stdio: 'ignore', env: { PATH: process.env['PATH'] } });
  if (made.status !== 0) return null;
  // ORDER: opened for reading first, without waiting: there is no writer yet.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const readEnd = new Socket({ fd: readFd, readable: true, writable: false });
  return { writeEnd, readEnd, closeWriteEnd: () => closeSync(writeEnd) };
}
