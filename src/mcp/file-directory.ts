/**
 * The directory into which values may be written, which the operator configured: private, ours, and the same one as at the start.
 * A name is one segment of a strict grammar, never a path. Only what was written here is ever replaced or removed.
 */

import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, unlink } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Secret } from '../core/secret.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { ToolError } from './errors.ts';

/** 1 to 64 characters, and no dot in front: neither `..` nor a hidden file. */
export const FILE_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';
const NAME = new RegExp(FILE_NAME);
const PRIVATE_FILE = 0o600;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** A file that was written here. Its handle stays open, so that it can be emptied wherever it was moved or linked to. */
interface Written {
  readonly file: string;
  readonly handle: FileHandle;
  readonly found: Identity;
}
type Identity = Pick<Stats, 'dev' | 'ino'>;
const isSame = (a: Identity, b: Identity): boolean => a.dev === b.dev && a.ino === b.ino;

export class FileDirectory {
  readonly path: string;
  /** How many files lie in it that nobody here wrote, at the start. */
  readonly preexistingFiles: number;
  readonly #found: Identity;
  readonly #written = new Map<string, Written>();
  #isClosed = false;

  private constructor(path: string, found: Identity, preexistingFiles: number) {
    this.path = path;
    this.#found = found;
    this.preexistingFiles = preexistingFiles;
  }

  /** Changes nothing. @throws UsageError */
  static async open(path: string): Promise<FileDirectory> {
    if (!isAbsolute(path)) throw new UsageError('--files-dir: must be an absolute path');
    try {
      const found = await lstat(path);
      const rule = brokenRule(found);
      if (rule !== null) throw new UsageError(`--files-dir: ${path} ${rule}`);
      return new FileDirectory(path, found, (await readdir(path)).length);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(
        `--files-dir: ${path} cannot be read${errnoSuffix(error)}; make it with: mkdir -m 700 ${path}`,
      );
    }
  }

  /** Writes a new file, or one in the place of its own former one. Resolves to its path. @throws Refusal */
  async write(name: string, value: Secret): Promise<string> {
    if (!NAME.test(name)) {
      throw new ToolError(
        'INVALID_REQUEST',
        'name: must be 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
      );
    }
    await this.#assertUnchanged();
    await this.remove(name);
    const file = join(this.path, name);
    let handle: FileHandle;
    try {
      handle = await open(file, NEW_FILE, PRIVATE_FILE);
    } catch (error) {
      if (errnoSuffix(error) === ' (EEXIST)') {
        throw new ToolError('NAME_TAKEN', 'name: there is a file of this name that this server did not write');
      }
      throw new ToolError('FAILED', `the file could not be made${errnoSuffix(error)}`);
    }
    try {
      // ORDER: known before it holds anything, so that whatever fails from here on, it is removed.
      this.#written.set(name, { file, handle, found: await handle.stat() });
      // What was under way when the server stopped leaves nothing.
      if (this.#isClosed) throw new ToolError('STOPPING', 'the server stops');
      await handle.chmod(PRIVATE_FILE);
      await handle.writeFile(value.reveal());
    } catch (error) {
      await this.remove(name);
      if (error instanceof ToolError) throw error;
      throw new ToolError('FAILED', `the file could not be written${errnoSuffix(error)}`);
    }
    return file;
  }

  /** Empties and removes it. Resolves to whether there was one. What somebody put in its place stays. */
  async remove(name: string): Promise<boolean> {
    const written = this.#written.get(name);
    if (written === undefined) return false;
    this.#written.delete(name);
    const { file, handle, found } = written;
    try {
      await handle.truncate(0);
    } catch {
      // A full disk or a lost mount: removing it is still tried.
    }
    try {
      if (isSame(await lstat(file), found)) await unlink(file);
    } catch {
      // It is gone, or so is its directory; it was emptied.
    }
    await handle.close().catch(() => undefined);
    return true;
  }

  /** Removes every file; none is written from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#written.keys()].map((name) => this.remove(name)));
  }

  /** @throws Refusal */
  async #assertUnchanged(): Promise<void> {
    const now = await lstat(this.path).catch(() => null);
    if (now === null || !isSame(now, this.#found) || brokenRule(now) !== null) {
      throw new ToolError('FAILED', 'the directory for files is no longer the private one that it was at the start');
    }
  }
}

function brokenRule(found: Stats): string | null {
  if (!found.isDirectory()) return 'must be a directory, and not a link to one';
  const self = process.getuid?.();
  if (self !== undefined && found.uid !== self) return 'must belong to the user that runs this server';
  if ((found.mode & 0o077) !== 0) return 'must be private: chmod 700';
  return null;
}
