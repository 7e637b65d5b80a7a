/**
 * One service per data directory. It holds a lock of the operating system through SQLite, on a separate file: the
 * lock ends with the process, so that none is ever stale.
 */

import { StartupError } from '../platform/errors.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

/** Held until the process ends or `release` is called. @throws StartupError if another service holds it */
export function lockDataDir(file: string, dataDir: string): DatabaseLock {
  const lock = DatabaseLock.take(file);
  if (lock === null) {
    throw new StartupError(`Another Leasehold runs on ${dataDir}. Stop it first, or give another --data-dir.`);
  }
  return lock;
}
