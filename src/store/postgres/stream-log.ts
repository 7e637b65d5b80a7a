/**
 * The audit log of a shared database for one stream, over one connection. An advisory lock of that connection makes
 * this the only node that sends the stream. INVARIANT: a position is saved only over the connection that holds the
 * lock.
 */
import { readEntries, readLastSeq, readPosition, savePosition } from '../audit-log.ts';
import type { StreamLog } from '../port.ts';
import type { Procedure } from '../statement.ts';
import { type Connection, withDeadline } from './connection.ts';
import type { Hosts } from './database-hosts.ts';
import { RESPONSE_TIMEOUT_MS } from './driver.ts';
import { toStoreError } from './errors.ts';
import { assertContains } from './fence.ts';

export class PostgresStreamLog implements StreamLog {
  readonly #hosts: Hosts;
  #connection: Connection | null = null;
  #isClosed = false;

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
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
      this.#connection ??= await this.#hosts.connect('reading');
      const connection = this.#connection;
      if (this.#isClosed) connection.close();
      const fenced = this.#hosts.guard(async () => {
        await assertContains(connection, this.#hosts.seen);
        return work(connection);
      });
      return await withDeadline(connection, RESPONSE_TIMEOUT_MS.reading, fenced, 'do not count');
    } catch (error) {
      throw toStoreError(error);
    }
  }
}
