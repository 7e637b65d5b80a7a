/**
 * The end of a log as it lies on the disk, read without changing the database or its write-ahead log: opening the store
 * writes the one into the other and drops what it cannot read, and closing it does so too.
 */
import { DatabaseSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import type { Store } from '../store.ts';
import { BUSY_TIMEOUT_MS, defineFunctions } from './database.ts';
import { Log } from './log.ts';

export class SqliteLogEnd implements Pick<Store, 'readHead' | 'readEntries' | 'readRootKeyCheck'> {
  readonly #database: DatabaseSync;
  readonly #log: Log;

  private constructor(database: DatabaseSync) {
    this.#database = database;
    defineFunctions(database);
    this.#log = new Log(database);
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

  async readRootKeyCheck(): Promise<string | null> {
    const row = this.#database.prepare('SELECT key_check FROM vault').get();
    return row === undefined ? null : String(row['key_check']);
  }

  async readHead(): ReturnType<Store['readHead']> {
    return this.#log.head();
  }

  async readEntries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]> {
    return this.#log.entries(fromSeq, toSeq, limit);
  }

  close(): void {
    this.#database.close();
  }
}
