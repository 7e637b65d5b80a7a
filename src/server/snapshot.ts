/**
 * A private copy of the database of a stopped service. WHY a copy: reading a SQLite file in WAL mode creates files
 * next to it, and recovery after a kill writes. The copy may change; the data directory does not, and no service can
 * start there meanwhile.
 */

import { chmodSync, constants, copyFileSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { StartupError } from '../platform/errors.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

const WRITABLE = 0o600;

export interface DatabaseSnapshot {
  /** The copied database. */
  readonly file: string;
  /** Without a lock file to hold, a service may have started meanwhile. @throws StartupError */
  assertUnchanged(): void;
}

/**
 * The copy and the lock of the directory are two of `resources`. @throws StartupError if a service uses the directory,
 * or it has no database
 */
export function copyDatabase(dataDir: string, resources: AsyncDisposableStack): DatabaseSnapshot {
  const { databaseFile, lockFile } = dataDirPaths(dataDir);
  if (!isFile(databaseFile))
    throw new StartupError(`${dataDir} contains no vault: ${basename(databaseFile)} is missing.`);
  if (isFile(lockFile)) {
    const lock = DatabaseLock.takeShared(lockFile);
    if (lock === null) throw new StartupError(`A Leasehold runs on ${dataDir}. Nothing was changed. Stop it first.`);
    resources.defer(() => lock.release());
  }
  // Without -shm: SQLite rebuilds this index from the -wal file.
  const originals = [databaseFile, `${databaseFile}-wal`];
  /** Differs after every change of the files, and after a lock file appears. */
  const fingerprint = (): string => {
    const files = originals.map((file) => {
      const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? 'none' : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    });
    return [...files, isFile(lockFile)].join();
  };
  const initial = fingerprint();
  const assertUnchanged = (): void => {
    if (fingerprint() === initial) return;
    throw new StartupError(
      `${databaseFile} changed while it was read. Stop the program that uses it and run this command again.`,
    );
  };
  const copyDir = mkdtempSync(join(tmpdir(), 'leasehold-migrate-'));
  resources.defer(() => rmSync(copyDir, { recursive: true, force: true }));
  for (const original of originals.filter(isFile)) {
    const copy = join(copyDir, basename(original));
    try {
      copyFileSync(original, copy, constants.COPYFILE_FICLONE);
      chmodSync(copy, WRITABLE);
    } catch (error) {
      throw new StartupError(
        `${original} cannot be copied to ${tmpdir()}${errnoSuffix(error)}. Free enough space there, or set TMPDIR to another directory.`,
      );
    }
  }
  assertUnchanged();
  return { file: join(copyDir, basename(databaseFile)), assertUnchanged };
}

/** @throws StartupError for a link or another kind of file */
function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}
