/**
 * Connections for what is read beside the turns. As many as there are places; who comes more waits, and is refused when he has
 * waited for long. One that failed is not used again.
 */
import { StoreError } from '../store.ts';
import { type Connection, withDeadline } from './connection.ts';
import { toStoreError } from './errors.ts';
import type { ReconnectThrottle } from './reconnect-throttle.ts';

const ACQUIRE_TIMEOUT_MS = 5000;
/** Longer than the server's own time-out for a statement: then it does not answer at all. */
export const RESPONSE_TIMEOUT_MS = 12_000;

export class Pool {
  readonly #throttle: ReconnectThrottle;
  #slots: number;
  readonly #idle: Connection[] = [];
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(throttle: ReconnectThrottle, slots: number) {
    this.#throttle = throttle;
    this.#slots = slots;
  }

  /** Has the work done on a connection of its own. @throws StoreError, and what the work throws that is none of the driver's */
  async use<T>(work: (connection: Connection) => Promise<T>, withinMs = RESPONSE_TIMEOUT_MS): Promise<T> {
    await this.#acquireSlot();
    let connection: Connection | null = null;
    try {
      connection = await this.#acquire();
      return await withDeadline(connection, withinMs, work(connection));
    } catch (error) {
      // What has been idle for longer is hardly better.
      if (connection?.isOpen === false) this.closeIdle();
      throw toStoreError(error);
    } finally {
      if (connection !== null) this.#release(connection);
      this.#releaseSlot();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.closeIdle();
  }

  /** Whoever comes next gets a connection of his own: a server that fell silent does not say that it is gone. */
  closeIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  async #acquireSlot(): Promise<void> {
    if (this.#isClosed) throw new StoreError('unavailable', 'PostgreSQL: the store was closed');
    if (this.#slots > 0) {
      this.#slots -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
      reject(new StoreError('unavailable', 'PostgreSQL: all connections for reading are in use'));
    }, ACQUIRE_TIMEOUT_MS);
    this.#waiting.push(resolve);
    await promise;
    clearTimeout(timer);
  }

  #releaseSlot(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#slots += 1;
    else next();
  }

  async #acquire(): Promise<Connection> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) if (idle.isOpen) return idle;
    return this.#throttle.open('reading');
  }

  #release(connection: Connection): void {
    if (this.#isClosed) connection.close();
    else if (connection.isOpen) this.#idle.push(connection);
  }
}
