/** Reading the log of a PostgreSQL over a connection of its own, from a thread. */
import type { AuditEntry } from '../../core/audit.ts';
import type { LogReader } from '../port.ts';
import type { PostgresAddress } from './address.ts';
import { Connection } from './connection.ts';
import { toFailure } from './failures.ts';
import { readEntries } from './log.ts';

export class PostgresLogReader implements LogReader {
  readonly #connection: Connection;

  private constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws StoreFailure */
  static async open(address: PostgresAddress): Promise<PostgresLogReader> {
    return new PostgresLogReader(await Connection.open(address, 'reading'));
  }

  async entries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]> {
    try {
      return await readEntries(this.#connection, fromSeq, toSeq, limit);
    } catch (error) {
      throw toFailure(error);
    }
  }

  close(): void {
    this.#connection.close();
  }
}
