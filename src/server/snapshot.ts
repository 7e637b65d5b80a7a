/**
 * A private copy of the database of a stopped service. WHY a copy: reading a SQLite file in WAL mode creates files
 * next to it, and recovery after a kill writes. The copy may change; the data directory does not, and no service can
 * start there meanwhile.
 */

import { chmodSync, constants, copyFileSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

const WRITABLE = 0o600;

export class DatabaseSnapshot {
  /** The copied database. */
  readonly file: string;
  readonly #copyDir: string;
  readonly #originals: readonly string[];
  readonly #lockFile: string;
  readonly #lock: DatabaseLock | null;
  readonly #initial: string;

  /** @throws StartupError if a service uses the directory, or it has no database */
  constructor(dataDir: string) {
    const { databaseFile, lockFile } = dataDirPaths(dataDir);
    if (!isFile(databaseFile))
      throw new StartupError(`${dataDir} contains no vault: ${basename(databaseFile)} is missing.`);
    this.#lockFile = lockFile;
    this.#lock = lockSource(lockFile, dataDir);
    // Without -shm: SQLite rebuilds this index from the -wal file.
    this.#originals = [databaseFile, `${databaseFile}-wal`];
    this.#copyDir = mkdtempSync(join(tmpdir(), 'leasehold-migrate-'));
    this.file = join(this.#copyDir, basename(databaseFile));
    this.#initial = this.#fingerprint();
    try {
      this.#copy();
      this.assertUnchanged();
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** Without a lock file to hold, a service may have started meanwhile. @throws StartupError */
  assertUnchanged(): void {
    if (this.#fingerprint() === this.#initial) return;
    throw new StartupError(
      `${this.#originals[0]} changed while it was read. Stop the program that uses it and run this command again.`,
    );
  }

  /** Deletes the copy and releases the lock of the directory. */
  remove(): void {
    rmSync(this.#copyDir, { recursive: true, force: true });
    this.#lock?.release();
  }

  #copy(): void {
    for (const original of this.#originals.filter(isFile)) {
      const copy = join(this.#copyDir, basename(original));
      try {
        copyFileSync(original, copy, constants.COPYFILE_FICLONE);
        chmodSync(copy, WRITABLE);
      } catch (error) {
        const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        throw new StartupError(
          `${original} cannot be copied to ${tmpdir()} (${why}). Free enough space there, or set TMPDIR to another directory.`,
        );
      }
    }
  }

  /** Differs after every change of the files, and after a lock file appears. */
  #fingerprint(): string {
    const files = this.#originals.map((file) => {
      const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    });
    return [...files, this.#lock === null && isFile(this.#lockFile) ? 'locked' : 'free'].join();
  }
}

/** Null without a lock file; creates none. @throws StartupError if a service holds the lock */
function lockSource(lockFile: string, dataDir: string): DatabaseLock | null {
  if (!isFile(lockFile)) return null;
  const lock = DatabaseLock.takeShared(lockFile);
  if (lock === null) throw new StartupError(`A Leasehold runs on ${dataDir}. Nothing was changed. Stop it first.`);
  return lock;
}

/** @throws StartupError for a link or another kind of file */
function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}
