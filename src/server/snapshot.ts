/**
 * A private copy of a database. WHY a copy: reading a SQLite file in WAL mode creates files next to it, and recovery
 * after a kill writes. The copy may change; the data directory does not.
 */

import { chmodSync, constants, copyFileSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { StartupError } from '../platform/errors.ts';
import { assertPrivate } from '../platform/private-files.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

const WRITABLE = 0o600;
/** Of a database. Without -shm: SQLite rebuilds this index from the -wal file. */
const SUFFIXES = ['', '-wal'] as const;

export interface DatabaseSnapshot {
  /** The copied database. */
  readonly file: string;
  /** Without a lock file to hold, a service may have started meanwhile. @throws StartupError */
  assertUnchanged(): void;
}

/**
 * Copies the database of a stopped service. The copy and the lock of the directory, where no service can start
 * meanwhile, are two of `resources`. @throws StartupError if a service uses the directory,
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
  /** Differs after every change of the files, and after a lock file appears. */
  const fingerprint = (): string => {
    const files = SUFFIXES.map((suffix) => {
      const file = databaseFile + suffix;
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
  const copyDir = mkdtempSync(join(tmpdir(), 'leasehold-copy-'));
  resources.defer(() => rmSync(copyDir, { recursive: true, force: true }));
  const file = join(copyDir, basename(databaseFile));
  copyDatabaseFiles(databaseFile, file, resources);
  assertUnchanged();
  return { file, assertUnchanged };
}

/** Copies a database that no process uses to a new file, which is one of `resources`. @throws StartupError */
export function copyDatabaseFiles(databaseFile: string, copy: string, resources: AsyncDisposableStack): void {
  resources.defer(() => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(copy + suffix, { force: true });
  });
  for (const suffix of SUFFIXES.filter((each) => isFile(databaseFile + each))) {
    try {
      copyFileSync(databaseFile + suffix, copy + suffix, constants.COPYFILE_FICLONE);
      chmodSync(copy + suffix, WRITABLE);
      assertPrivate(copy + suffix, lstatSync(copy + suffix));
    } catch (error) {
      if (error instanceof StartupError) throw error;
      throw new StartupError(
        `${databaseFile}${suffix} cannot be copied to ${dirname(copy)}${errnoSuffix(error)}. Free enough space there.`,
      );
    }
  }
}

/** @throws StartupError for a link or another kind of file */
function isFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  return found !== undefined;
}
