/**
 * Reads a log over a read-only connection, which changes neither the database nor its write-ahead log: opening or
 * closing the store checkpoints that log and drops what it cannot read.
 */
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { AuditEntry } from '../../core/audit.ts';
import type { StoredKeys } from '../../core/keyset.ts';
import { readHead, readMacs } from '../audit-log.ts';
import { readTreeNodes } from '../audit-tree.ts';
import { readNewestState } from '../recorded-states.ts';
import type { LogReader, Store } from '../sql-store.ts';
import { type Procedure, sql } from '../statement.ts';
import { readRootKeyCheck, readStoredKeys } from '../vault-metadata.ts';
import { BUSY_TIMEOUT_MS, isOutOfRange } from './database.ts';
import { ENTRIES_GATHERED, ENTRIES_IN_RANGE, toEntry } from './rows.ts';
import { readAll, Statements } from './statements.ts';

type StoreReads = Pick<Store, 'isMultiWriter' | 'readHead' | 'readMacs' | 'readTreeNodes' | 'readNewestState'>;

export class SqliteLogFile implements LogReader, StoreReads {
  readonly isMultiWriter = false;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  #gathered: AuditEntry[] = [];

  /**
   * `isImmutable`: no other connection exists, and no write-ahead log: then not even an index of that log is created.
   * @throws errors of SQLite, as every method
   */
  constructor(file: string, isImmutable = false) {
    const location = pathToFileURL(file);
    if (isImmutable) location.searchParams.set('immutable', '1');
    this.#database = new DatabaseSync(location, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    this.#statements = new Statements(this.#database);
    // WHY a function: reading a column of a result row locks the connection, which doubles the cost.
    // Arguments of a function need no lock.
    this.#database.function('gather', { varargs: true, directOnly: true }, (...row) => {
      this.#gathered.push(toEntry(row));
      return null;
    });
  }

  /** Of a schema from before key slots existed, only the check value. */
  async readStoredKeys(): Promise<StoredKeys> {
    const [table] = this.#statements.read(sql`SELECT 1 FROM sqlite_schema WHERE name = 'key_slots'`);
    if (table !== undefined) return this.#run(readStoredKeys());
    return { keyCheck: await this.#run(readRootKeyCheck()), vaultId: null, keyset: null, slots: [] };
  }

  readHead() {
    return this.#run(readHead());
  }

  readMacs(fromSeq: number, toSeq: number, limit: number) {
    return this.#run(readMacs(fromSeq, toSeq, limit));
  }

  readTreeNodes(level: number, from: number, to: number) {
    return this.#run(readTreeNodes(level, from, to));
  }

  readNewestState(subject: string) {
    return this.#run(readNewestState(subject));
  }

  async readEntries(fromSeq: number, toSeq: number, limit: number) {
    this.#gathered = [];
    try {
      this.#statements.prepare(ENTRIES_GATHERED).get(fromSeq, toSeq, limit);
      return this.#gathered;
    } catch (error) {
      if (!isOutOfRange(error)) throw error;
    }
    const entries = this.#database.prepare(ENTRIES_IN_RANGE);
    entries.setReturnArrays(true);
    return readAll(entries, fromSeq, toSeq, limit).map(toEntry);
  }

  close(): void {
    this.#database.close();
  }

  async #run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#statements.run(procedure);
  }
}
