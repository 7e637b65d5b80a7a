/**
 * The log of a shared database for one stream, over one connection. An advisory lock of that connection makes this the
 * only node that sends the stream. INVARIANT: a position is saved only over the connection that holds the lock.
 */
import { readEntries } from '../audit-log.ts';
import type { Procedure } from '../statement.ts';
import { readLastSeq, readPosition, type StreamLog, savePosition } from '../stream-log.ts';
import { type Connection, withDeadline } from './connection.ts';
import { toStoreError } from './errors.ts';
import { type OpenConnection, RESPONSE_TIMEOUT_MS } from './pool.ts';

export class PostgresStreamLog implements StreamLog {
  readonly #open: OpenConnection;
  #connection: Connection | null = null;
  #isClosed = false;

  constructor(open: OpenConnection) {
    this.#open = open;
  }

  async claim(name: string): Promise<boolean> {
    return this.#use(async (connection) => {
      const key = `leasehold log stream ${name}`;
      const [row] = await connection.query`SELECT pg_try_advisory_lock(hashtextextended(${key}, 0)) AS is_ours`;
      return row?.['is_ours'] === true;
    });
  }

  readEnd() {
    return this.#run(readLastSeq());
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.#run(readEntries(fromSeq, toSeq, limit));
  }

  readPosition(name: string) {
    return this.#run(readPosition(name));
  }

  savePosition(name: string, seq: number) {
    return this.#run(savePosition(name, seq));
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  #run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#use((connection) => connection.run(procedure));
  }

  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      // WHY never a second connection: the lock is bound to the first one.
      this.#connection ??= await this.#open('reading');
      if (this.#isClosed) this.#connection.close();
      return await withDeadline(this.#connection, RESPONSE_TIMEOUT_MS, work(this.#connection), 'do not count');
    } catch (error) {
      throw toStoreError(error);
    }
  }
}
