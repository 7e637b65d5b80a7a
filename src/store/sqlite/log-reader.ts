/** Reads the log of a SQLite file over a read-only connection. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import type { LogReader } from '../store.ts';
import { ENTRIES_GATHERED, toEntry } from './rows.ts';

export class SqliteLogReader implements LogReader {
  readonly #database: DatabaseSync;
  readonly #gather: StatementSync;
  #gathered: AuditEntry[] = [];

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    // WHY a function: reading a column of a result row locks the connection, which doubles the cost.
    // Arguments of a function need no lock.
    this.#database.function('gather', { varargs: true, directOnly: true }, (...row) => {
      this.#gathered.push(toEntry(row));
      return null;
    });
    this.#gather = this.#database.prepare(ENTRIES_GATHERED);
  }

  async entries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]> {
    this.#gathered = [];
    this.#gather.get(fromSeq, toSeq, limit);
    return this.#gathered;
  }

  close(): void {
    this.#database.close();
  }
}
