/**
 * Reads an embedded database over a read-only connection, which changes neither the database nor its write-ahead log:
 * opening the store would migrate the schema, and opening or closing it checkpoints that log and drops what it cannot
 * read.
 */

import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { StartupError } from '../../platform/errors.ts';
import { type AuditEntry, toEntry } from '../../vault/audit/audit-entry.ts';
import { StoreError } from '../errors.ts';
import type { LogReader, Store } from '../port.ts';
import { AUDIT_ENTRIES } from '../schema.ts';
import type { Procedure } from '../statement.ts';
import { BUSY_TIMEOUT_MS, describeOpenError, isOfSystem, isOutOfRange, toStoreError } from './database.ts';
import { assertDiskSpace } from './disk-space.ts';
import { readAll, Statements } from './statements.ts';

const ENTRY_COLUMNS = AUDIT_ENTRIES.list.parts.join('');

/** A range of the audit log, for `toEntry`, which reads an array in the order of the columns. */
const ENTRIES_IN_RANGE = `SELECT ${ENTRY_COLUMNS} FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`;

/** The same, but calls the function `gather` for each row. */
const ENTRIES_GATHERED = `SELECT count(gather(${ENTRY_COLUMNS})) FROM
  (SELECT * FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?)`;

export class SqliteLogFile implements LogReader, Pick<Store, 'isMultiWriter' | 'run'> {
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

  async run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#statements.run(procedure);
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
    return readAll(entries, fromSeq, toSeq, limit).map((row) => toEntry(Object.values(row)));
  }

  close(): void {
    this.#database.close();
  }
}

/**
 * Reads a database before it is opened. Null if the file is damaged or has another schema: opening it reports that.
 * @throws StoreError for a failure of the system, such as a full disk
 */
export async function readAtRest<T>(
  file: string,
  read: (log: SqliteLogFile) => Promise<T>,
  isImmutable = !hasWriteAheadLog(file),
): Promise<T | null> {
  let log: SqliteLogFile | null = null;
  try {
    if (!isImmutable) assertDiskSpace(file);
    log = new SqliteLogFile(file, isImmutable);
    return await read(log);
  } catch (error) {
    if (error instanceof StartupError || error instanceof StoreError) throw error;
    if (isOfSystem(error)) throw describeOpenError(file, toStoreError(error));
    return null;
  } finally {
    log?.close();
  }
}

export function hasWriteAheadLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
