/**
 * The operator's directory for files with values: private, owned by this user, and unchanged since the start. Names are
 * single segments of a strict grammar. Only files that this server wrote are replaced or removed.
 */

import type { Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, unlink } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { Secret } from '../core/secret.ts';
import { childPath } from '../platform/child-path.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { privacyViolation } from '../platform/ownership.ts';
import { ToolError } from './errors.ts';

/** 1 to 64 characters without a leading dot: neither `..` nor a hidden file. */
export const FILE_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';
const NAME = new RegExp(FILE_NAME);
const PRIVATE_FILE = 0o600;

/**
 * A file that this server wrote. Its handle stays open, so that the file can be emptied after it was moved or linked.
 */
interface Written {
  readonly file: string;
  readonly handle: FileHandle;
  readonly found: Identity;
}
type Identity = Pick<Stats, 'dev' | 'ino'>;
const isSame = (a: Identity, b: Identity): boolean => a.dev === b.dev && a.ino === b.ino;

export class FileDirectory {
  readonly path: string;
  readonly #found: Identity;
  readonly #written = new Map<string, Written>();
  #isClosed = false;

  private constructor(path: string, found: Identity) {
    this.path = path;
    this.#found = found;
  }

  /** Changes nothing; reports files that are already there. @throws UsageError */
  static async open(path: string, log: (line: string) => void): Promise<FileDirectory> {
    if (!isAbsolute(path)) throw new UsageError('--files-dir: must be an absolute path');
    try {
      const found = await lstat(path);
      const rule = privacyViolation(found, 'directory');
      if (rule !== null) throw new UsageError(`--files-dir: ${path} ${rule}`);
      const { length } = await readdir(path);
      if (length > 0) log(`${path} already has ${length} files: a server that was killed leaves its files behind`);
      return new FileDirectory(path, found);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(
        `--files-dir: ${path} cannot be read${errnoSuffix(error)}; make it with: mkdir -m 700 ${path}`,
      );
    }
  }

  /** Writes a new file, or replaces one that this server wrote. Resolves to its path. @throws ToolError */
  async write(name: string, value: Secret): Promise<string> {
    if (!NAME.test(name)) {
      throw new ToolError(
        'INVALID_REQUEST',
        'name: must be 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
      );
    }
    await this.#assertUnchanged();
    await this.remove(name);
    const file = childPath(this.path, name);
    let handle: FileHandle;
    try {
      handle = await open(file, 'wx', PRIVATE_FILE);
    } catch (error) {
      if (errnoSuffix(error) === ' (EEXIST)') {
        throw new ToolError('NAME_TAKEN', 'name: a file of this name exists that this server did not write');
      }
      throw new ToolError('FAILED', `the file could not be created${errnoSuffix(error)}`);
    }
    try {
      // ORDER: registered before the value is written, so that it is removed after any failure.
      this.#written.set(name, { file, handle, found: await handle.stat() });
      // A call in flight when the server stops leaves no file.
      if (this.#isClosed) throw new ToolError('STOPPING', 'the server stops');
      await handle.chmod(PRIVATE_FILE);
      // Read back, because some file systems accept a mode and ignore it.
      const rule = privacyViolation(await handle.stat(), 'file');
      if (rule !== null) throw new ToolError('FAILED', `the new file ${rule}`);
      await handle.writeFile(value.reveal());
    } catch (error) {
      await this.remove(name);
      if (error instanceof ToolError) throw error;
      throw new ToolError('FAILED', `the file could not be written${errnoSuffix(error)}`);
    }
    return file;
  }

  /** Empties and removes the file; resolves to whether it existed. A different file of the same name is kept. */
  async remove(name: string): Promise<boolean> {
    const written = this.#written.get(name);
    if (written === undefined) return false;
    this.#written.delete(name);
    const { file, handle, found } = written;
    try {
      await handle.truncate(0);
    } catch {
      // Full disk or lost mount: removal is still tried.
    }
    try {
      if (isSame(await lstat(file), found)) await unlink(file);
    } catch {
      // The file or its directory was removed; the file was emptied.
    }
    await handle.close().catch(() => undefined);
    return true;
  }

  /** Removes every file, and prevents further ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#written.keys()].map((name) => this.remove(name)));
  }

  /** @throws ToolError */
  async #assertUnchanged(): Promise<void> {
    const now = await lstat(this.path).catch(() => null);
    if (now === null || !isSame(now, this.#found) || privacyViolation(now, 'directory') !== null) {
      throw new ToolError('FAILED', 'the directory for files was replaced or is no longer private');
    }
  }
}
