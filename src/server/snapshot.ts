/**
 * A private copy of a database that lies still, to be read in its place. WHY a copy: reading a SQLite file in WAL mode makes files
 * beside it, and one whose service was killed is brought in order first, which writes. The copy may be written to; the data
 * directory is not, by a byte, and no service can start there meanwhile.
 */

import { chmodSync, constants, copyFileSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { layOut } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

const PREFIX = 'leasehold-migrate-';
const WRITABLE = 0o600;
const LOCK = 'lock';

export class DatabaseSnapshot {
  /** The copied database. */
  readonly file: string;
  readonly #folder: string;
  readonly #folderLock: DatabaseLock | null;
  readonly #originals: readonly string[];
  readonly #lockFile: string;
  readonly #lock: DatabaseLock | null;
  readonly #seen: string;

  /** @throws StartupError where a service has the directory, or it holds no database */
  constructor(dataDir: string) {
    const { databaseFile, lockFile } = layOut(dataDir);
    if (!isFile(databaseFile))
      throw new StartupError(`${dataDir} holds no vault: there is no ${basename(databaseFile)}.`);
    this.#lockFile = lockFile;
    this.#lock = lockSource(lockFile, dataDir);
    // Not -shm: it is an index of the -wal, and made anew.
    this.#originals = [databaseFile, `${databaseFile}-wal`];
    removeStale();
    this.#folder = mkdtempSync(join(tmpdir(), PREFIX));
    this.#folderLock = DatabaseLock.take(join(this.#folder, LOCK));
    this.file = join(this.#folder, basename(databaseFile));
    this.#seen = this.#look();
    try {
      this.#copy();
      this.assertStill();
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** Where there was no lock file to hold, a service may have been started. @throws StartupError */
  assertStill(): void {
    if (this.#look() === this.#seen) return;
    throw new StartupError(`${this.#originals[0]} changed while it was read: stop what uses it, and run this again.`);
  }

  /** Removes the copy, and gives the directory free. */
  remove(): void {
    this.#folderLock?.release();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#lock?.release();
  }

  #copy(): void {
    for (const original of this.#originals.filter(isFile)) {
      const copy = join(this.#folder, basename(original));
      try {
        copyFileSync(original, copy, constants.COPYFILE_FICLONE);
        chmodSync(copy, WRITABLE);
      } catch (error) {
        const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        throw new StartupError(
          `${original} cannot be copied into ${tmpdir()} to be read (${why}). It needs room for a copy; TMPDIR names another folder.`,
        );
      }
    }
  }

  /** What tells of every change: of the files, and of a lock that came to be. */
  #look(): string {
    const files = this.#originals.map((file) => {
      const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    });
    return [...files, this.#lock === null && isFile(this.#lockFile) ? 'locked' : 'free'].join();
  }
}

/** Null where there is no lock: none is made. @throws StartupError where a service has it */
function lockSource(lockFile: string, dataDir: string): DatabaseLock | null {
  if (!isFile(lockFile)) return null;
  const lock = DatabaseLock.takeShared(lockFile);
  if (lock === null) throw new StartupError(`A Leasehold runs on ${dataDir}. Stop it first; nothing was changed.`);
  return lock;
}

/** @throws StartupError for a link, or what is no file */
function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}

/** Copies whose process was killed. */
function removeStale(): void {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(PREFIX))) {
    const folder = join(tmpdir(), name);
    try {
      if (lstatSync(folder).uid !== process.getuid?.()) continue;
      const lock = DatabaseLock.take(join(folder, LOCK));
      lock?.release();
      if (lock !== null) rmSync(folder, { recursive: true, force: true });
    } catch {
      // Another process was faster.
    }
  }
}
