/**
 * One service a data directory. The lock is the operating system's, held through SQLite on a file of its own: it ends with the
 * process however that ends, and leaves nothing stale.
 */

import { StartupError } from '../platform/errors.ts';
import { DatabaseLock } from '../store/sqlite/lock.ts';

/** Held until the process ends or `release` is called. @throws StartupError where another service holds it */
export function lockDataDir(file: string, dataDir: string): DatabaseLock {
  const lock = DatabaseLock.take(file);
  if (lock === null) {
    throw new StartupError(`Another Leasehold runs on ${dataDir}. Stop it first, or give another --data-dir.`);
  }
  return lock;
}
