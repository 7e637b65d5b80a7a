/**
 * A lock between processes: an exclusive transaction on an empty database, which the operating system ends with the
 * process.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { BUSY_TIMEOUT_MS, describeOpenError, isBusy, toStoreError } from './database.ts';

/** Commands hold the lock briefly to check it, which must not prevent a start. */
const TAKE_TIMEOUT_MS = 250;

export class DatabaseLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Null if another process holds it. Creates the file if missing and changes nothing else. */
  static take(file: string): DatabaseLock | null {
    const database = new DatabaseSync(file, { timeout: TAKE_TIMEOUT_MS });
    try {
      database.exec('BEGIN EXCLUSIVE');
      return new DatabaseLock(database);
    } catch (error) {
      database.close();
      const failure = toStoreError(error);
      if (isBusy(failure)) return null;
      throw describeOpenError(file, failure);
    }
  }

  /**
   * Keeps others from taking it, and is taken itself where nobody has it: without a byte that changes, nor a file. Null
   * where another process has it. The file must be there.
   */
  static takeShared(file: string): DatabaseLock | null {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    try {
      database.exec('BEGIN; SELECT 1 FROM sqlite_schema;');
      // A statement that has ended keeps its lock until the transaction does.
      database.prepare('SELECT count(*) FROM sqlite_schema').get();
      return new DatabaseLock(database);
    } catch (error) {
      database.close();
      const failure = toStoreError(error);
      if (isBusy(failure)) return null;
      throw describeOpenError(file, failure);
    }
  }

  release(): void {
    this.#database.close();
  }
}

/**
 * Takes the database itself for a moment, as another lock than the file next to it, which somebody may have removed. A
 * process that has a database in WAL mode open holds a shared lock on it until it ends. To be called before this
 * process opens it.
 * @throws StoreError `unavailable` where another process has it open
 */
export function assertUnused(file: string): void {
  if (!existsSync(file)) return;
  const database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA fullfsync = ON;');
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch (error) {
    // Opening the database says what else is wrong with it.
    if (isBusy(toStoreError(error))) {
      throw new StoreError('unavailable', `${file} is in use by another program; end that first`);
    }
  } finally {
    database.close();
  }
}
