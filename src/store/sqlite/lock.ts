/**
 * A lock between processes: an exclusive transaction on an empty database, which the operating system ends with the
 * process.
 */
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';
import { describeOpenError, isBusy, toStoreError } from './database.ts';

/** Commands hold the lock briefly to check it, which must not prevent a start. */
const TAKE_TIMEOUT_MS = 250;

export class DatabaseLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Null if another process holds it. Creates the file if missing and changes nothing else. */
  static take(file: string): DatabaseLock | null {
    return DatabaseLock.#begin(file, { timeout: TAKE_TIMEOUT_MS }, 'BEGIN EXCLUSIVE');
  }

  /**
   * Keeps other processes from taking the lock, without changing or creating a file. Null if another process holds it.
   * The file must exist.
   */
  static takeShared(file: string): DatabaseLock | null {
    return DatabaseLock.#begin(file, { readOnly: true, timeout: 0 }, 'BEGIN; SELECT 1 FROM sqlite_schema');
  }

  /** The transaction keeps its lock until the database is closed. */
  static #begin(file: string, options: DatabaseSyncOptions, statements: string): DatabaseLock | null {
    const database = new DatabaseSync(file, options);
    try {
      database.exec(statements);
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
