/**
 * The end of a log as it is on the disk, read without changing the database or its write-ahead log: opening or closing
 * the store checkpoints the log and drops what it cannot read.
 */
import { DatabaseSync } from 'node:sqlite';
import { readEntries, readHead } from '../audit-log.ts';
import type { Procedure } from '../statement.ts';
import type { Store } from '../store.ts';
import { readRootKeyCheck } from '../vault-metadata.ts';
import { BUSY_TIMEOUT_MS } from './database.ts';
import { Statements } from './statements.ts';

export class SqliteLogEnd implements Pick<Store, 'readHead' | 'readEntries' | 'readRootKeyCheck'> {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;

  private constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = new Statements(database);
    this.#statements.run(readHead());
  }

  /** Null if the file is not a database with a log; opening the store reports the reason. */
  static open(file: string): SqliteLogEnd | null {
    let database: DatabaseSync | null = null;
    try {
      database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
      return new SqliteLogEnd(database);
    } catch {
      database?.close();
      return null;
    }
  }

  readRootKeyCheck() {
    return this.#run(readRootKeyCheck());
  }

  readHead() {
    return this.#run(readHead());
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.#run(readEntries(fromSeq, toSeq, limit));
  }

  close(): void {
    this.#database.close();
  }

  async #run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#statements.run(procedure);
  }
}
