/** Reads the log of a PostgreSQL store over a separate connection, from a thread. */
import type { AuditEntry } from '../../core/audit.ts';
import { readEntries } from '../audit-log.ts';
import type { LogReader } from '../store.ts';
import type { PostgresAddress } from './address.ts';
import { Connection, withDeadline } from './connection.ts';
import { toStoreError } from './errors.ts';
import { RESPONSE_TIMEOUT_MS } from './pool.ts';

export class PostgresLogReader implements LogReader {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws StoreError */
  static async open(address: PostgresAddress): Promise<PostgresLogReader> {
    return new PostgresLogReader(await Connection.open(address, 'reading'));
  }

  async entries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]> {
    try {
      const entries = this.#connection.run(readEntries(fromSeq, toSeq, limit));
      return await withDeadline(this.#connection, RESPONSE_TIMEOUT_MS, entries);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  close(): void {
    this.#connection.close();
  }
}
