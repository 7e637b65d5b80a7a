/** A lock between processes: an exclusive transaction on an empty database, which the operating system ends with the process. */
import { DatabaseSync } from 'node:sqlite';
import { atOpening, isBusy, toFailure } from './database.ts';

export class DatabaseLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Null where another process has it. Changes nothing but making the file. */
  static take(file: string): DatabaseLock | null {
    const database = new DatabaseSync(file, { timeout: 0 });
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

  release(): void {
    this.#database.close();
  }
}
