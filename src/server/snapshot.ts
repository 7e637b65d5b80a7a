/**
 * A private copy of a database. WHY a copy: reading a SQLite file in WAL mode creates files next to it, and recovery
 * after a kill writes. The copy may change; the data directory does not.
 */

import { chmodSync, constants, copyFileSync, lstatSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoSuffix } from '../platform/errno.ts';
import { StartupError } from '../platform/errors.ts';
import { assertPrivate } from '../platform/private-files.ts';

const WRITABLE = 0o600;
/** Of a database. Without -shm: SQLite rebuilds this index from the -wal file. */
const SUFFIXES = ['', '-wal'] as const;

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
