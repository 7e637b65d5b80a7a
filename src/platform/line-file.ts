/**
 * Appends lines to a file and syncs them. If a rotation renamed or removed the file, a new one is created at the path.
 */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { StartupError } from './errors.ts';

const MODE = 0o600;
const NEW_LINE = 0x0a;

export class LineFile {
  readonly path: string;
  #file: FileHandle | null = null;
  #latest: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.path = path;
  }

  /** Appends `lines`, which ends with a line feed. The lines are on disk when it resolves. */
  append(lines: string): Promise<void> {
    return this.#inTurn(() => this.#append(lines));
  }

  /** Runs `rewrite`, which replaces the file. No line is appended during that time. */
  rewrite(rewrite: () => void): Promise<void> {
    return this.#inTurn(async () => rewrite());
  }

  close(): Promise<void> {
    return this.#inTurn(() => this.#close());
  }

  /** WHY: two concurrent calls would open the file twice, and the first handle would never be closed. */
  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#latest.then(step);
    this.#latest = done.catch(() => undefined);
    return done;
  }

  async #append(lines: string): Promise<void> {
    try {
      await this.#leaveRotated();
      this.#file ??= await openToAppend(this.path);
      await this.#file.appendFile(lines);
      await this.#file.datasync();
    } catch (error) {
      // WHY: a failed write may have left a partial line, which the next opening completes.
      await this.#close();
      throw error;
    }
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close().catch(() => undefined);
  }

  async #leaveRotated(): Promise<void> {
    if (this.#file === null) return;
    const [opened, there] = await Promise.all([this.#file.stat(), stat(this.path).catch(() => null)]);
    if (there === null || there.ino !== opened.ino || there.dev !== opened.dev) await this.#close();
  }
}

/**
 * Rejects pipes, devices and directories; accepts links to files, and a path without a file. WHY: opening a pipe waits
 * for its other end, and none of them has an end that a restart can read. @throws StartupError
 */
export function assertLineFile(path: string): void {
  let isOther = false;
  try {
    isOther = statSync(path, { throwIfNoEntry: false })?.isFile() === false;
  } catch {
    // The code that opens the file reports the error.
  }
  if (isOther) throw new StartupError(`${path} must be a regular file, and not a pipe, a device or a directory.`);
}

/** The end of a file as text, at most that many bytes. @throws an error with an errno */
export function readEnd(path: string, maxBytes: number): { readonly text: string; readonly isWhole: boolean } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, maxBytes));
    const bytesRead = readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return { text: bytes.toString('utf8', 0, bytesRead), isWhole: bytes.length === size };
  } finally {
    closeSync(file);
  }
}

/** Opens the file to append. Completes a partial line that a crash has left; readers skip it. */
async function openToAppend(path: string): Promise<FileHandle> {
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
  const file = await open(path, flags, MODE);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    if (bytesRead === 1 && buffer[0] !== NEW_LINE) await file.appendFile('\n');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
