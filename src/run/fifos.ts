/**
 * A real pipe to a program. WHY: Node's `pipe` is a socket pair, which programs cannot open as /dev/stdout and which
 * reports a connection reset instead of SIGPIPE. The file is deleted once both ends are open.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { PrivateFiles } from './value-files.ts';

export interface Fifo {
  /** Passed to the program; call `closeWriteEnd` after its start. */
  readonly writeEnd: number;
  readonly readEnd: Readable;
  /** Closes our copy of the write end, so that the reader ends when the program closes its copy. */
  closeWriteEnd(): void;
}

/** Creates the fifo in the given directory; returns null when the system cannot. */
export function makeFifo({ directory }: PrivateFiles, name: string): Fifo | null {
  const path = join(directory, name);
  const made = spawnSync('mkfifo', ['-m', '600', path], { stdio: 'ignore', env: { PATH: process.env['PATH'] } });
  if (made.status !== 0) return null;
  // ORDER: the read end first, non-blocking: opening the write end blocks without a reader.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const readEnd = new Socket({ fd: readFd, readable: true, writable: false });
  return { writeEnd, readEnd, closeWriteEnd: () => closeSync(writeEnd) };
}
