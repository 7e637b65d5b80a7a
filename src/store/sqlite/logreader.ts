/** Reading the log of a SQLite file over a connection that can't write. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import type { LogReader } from '../port.ts';
import { ENTRIES_IN_RANGE, toEntry } from './rows.ts';

export class SqliteLogReader implements LogReader {
  readonly #database: DatabaseSync;
  readonly #entries: StatementSync;

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    this.#entries = this.#database.prepare(ENTRIES_IN_RANGE);
    this.#entries.setReturnArrays(true);
  }

  entries(fromSeq: number, toSeq: number, limit: number): AuditEntry[] {
    return this.#entries.all(fromSeq, toSeq, limit).map(toEntry);
  }

  close(): void {
    this.#database.close();
  }
}
