/**
 * A lock between processes: an exclusive transaction on an empty database, which the operating system ends with the
 * process.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';
import { StoreError } from '../errors.ts';
import { BUSY_TIMEOUT_MS, describeOpenError, isBusy, toStoreError } from './database.ts';

/** Commands hold the lock briefly to check it, which must not prevent a startup. */
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
    let database: DatabaseSync | null = null;
    try {
      database = new DatabaseSync(file, options);
      database.exec(statements);
      return new DatabaseLock(database);
    } catch (error) {
      database?.close();
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
 * Checks that no process has the database open, in case the lock file was removed: a process holds a shared lock on a
 * database in WAL mode until it ends. Call before this process opens it.
 * @throws StoreError `unavailable` if another process has it open
 */
export function assertUnused(file: string): void {
  if (!existsSync(file)) return;
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS });
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA fullfsync = ON;');
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
  } catch (error) {
    // Opening the database reports any other error.
    if (isBusy(toStoreError(error))) {
      throw new StoreError('unavailable', `${file} is in use by another program; end that first`);
    }
  } finally {
    database?.close();
  }
}
