/**
 * Reads a log over a read-only connection, which changes neither the database nor its write-ahead log: opening or
 * closing the store checkpoints that log and drops what it cannot read.
 */
import { DatabaseSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import { readHead } from '../audit-log.ts';
import type { LogReader, Store } from '../sql-store.ts';
import type { Procedure } from '../statement.ts';
import { readRootKeyCheck } from '../vault-metadata.ts';
import { BUSY_TIMEOUT_MS } from './database.ts';
import { ENTRIES_GATHERED, toEntry } from './rows.ts';
import { Statements } from './statements.ts';

export class SqliteLogFile implements LogReader, Pick<Store, 'readHead' | 'readRootKeyCheck'> {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  #gathered: AuditEntry[] = [];

  /** @throws errors of SQLite, as every method */
  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    this.#statements = new Statements(this.#database);
    // WHY a function: reading a column of a result row locks the connection, which doubles the cost.
    // Arguments of a function need no lock.
    this.#database.function('gather', { varargs: true, directOnly: true }, (...row) => {
      this.#gathered.push(toEntry(row));
      return null;
    });
  }

  readRootKeyCheck() {
    return this.#run(readRootKeyCheck());
  }

  readHead() {
    return this.#run(readHead());
  }

  async readEntries(fromSeq: number, toSeq: number, limit: number) {
    this.#gathered = [];
    this.#statements.prepare(ENTRIES_GATHERED).get(fromSeq, toSeq, limit);
    return this.#gathered;
  }

  close(): void {
    this.#database.close();
  }

  async #run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#statements.run(procedure);
  }
}
