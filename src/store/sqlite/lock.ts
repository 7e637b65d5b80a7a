/** A lock between processes: an exclusive transaction on an empty database, which the operating system ends with the process. */
import { DatabaseSync } from 'node:sqlite';
import { atOpening, isBusy, toFailure } from './database.ts';

/** A command that checks whether the lock is taken holds it for a moment: it must not keep a service from starting. */
const TAKE_TIMEOUT_MS = 250;

export class DatabaseLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Null where another process has it. Changes nothing but making the file. */
  static take(file: string): DatabaseLock | null {
    const database = new DatabaseSync(file, { timeout: TAKE_TIMEOUT_MS });
    try {
      database.exec('BEGIN EXCLUSIVE');
      return new DatabaseLock(database);
    } catch (error) {
      database.close();
      const failure = toFailure(error);
      if (isBusy(failure)) return null;
      throw atOpening(file, failure);
    }
  }

  /**
   * Keeps others from taking it, and is taken itself where nobody has it: without a byte that changes, nor a file. Null where
   * another process has it. The file must be there.
   */
  static hold(file: string): DatabaseLock | null {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    try {
      database.exec('BEGIN; SELECT 1 FROM sqlite_schema;');
      // A statement that has ended keeps its lock until the transaction does.
      database.prepare('SELECT count(*) FROM sqlite_schema').get();
      return new DatabaseLock(database);
    } catch (error) {
      database.close();
      const failure = toFailure(error);
      if (isBusy(failure)) return null;
      throw atOpening(file, failure);
    }
  }

  release(): void {
    this.#database.close();
  }
}
