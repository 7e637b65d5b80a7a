/**
 * Connections for reads outside transactions. When all slots are in use, callers wait, up to a time-out. A failed
 * connection is not reused. INVARIANT: a result comes from a server whose log has the last entry that this process has
 * seen.
 */
import { StoreError } from '../errors.ts';
import { type Connection, withDeadline } from './connection.ts';
import type { Hosts } from './database-hosts.ts';
import { type Purpose, RESPONSE_TIMEOUT_MS } from './driver.ts';
import { toStoreError } from './errors.ts';
import { assertContains, readFenced } from './fence.ts';

const ACQUIRE_TIMEOUT_MS = 5000;

export class Pool {
  readonly #hosts: Hosts;
  readonly #purpose: Exclude<Purpose, 'writing'>;
  readonly #size: number;
  /** Idle connections last, and null for each that may still be opened. */
  #free: (Connection | null)[];
  readonly #waiting: ((free: Connection | null) => void)[] = [];
  #isClosed = false;

  constructor(hosts: Hosts, size: number, purpose: Exclude<Purpose, 'writing'> = 'reading') {
    this.#hosts = hosts;
    this.#purpose = purpose;
    this.#size = size;
    this.#free = Array.from({ length: size }, () => null);
  }

  get inUse(): number {
    return this.#size - this.#free.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs the work on an exclusive connection. @throws StoreError; other errors of the work unchanged */
  use<T>(work: (connection: Connection) => Promise<T>, withinMs?: number): Promise<T> {
    return this.#use(async (connection) => {
      await assertContains(connection, this.#hosts.seen);
      return work(connection);
    }, withinMs);
  }

  /** Runs work that only reads: it shares its first round trip with the check of the server. @throws as `use` */
  read<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#use((connection) => readFenced(connection, this.#hosts.seen, () => work(connection)));
  }

  async #use<T>(
    work: (connection: Connection) => Promise<T>,
    withinMs = RESPONSE_TIMEOUT_MS[this.#purpose],
  ): Promise<T> {
    const free = this.#free.length > 0 ? this.#free.pop() : await this.#wait();
    let connection = free?.isOpen === true ? free : null;
    try {
      if (this.#isClosed) throw new StoreError('unavailable', 'PostgreSQL: the store was closed');
      connection ??= await this.#hosts.connect(this.#purpose);
      const working = connection;
      return await this.#hosts.guard(() => withDeadline(working, withinMs, work(working), 'do not count'));
    } catch (error) {
      // Idle connections are probably lost too.
      if (connection?.isOpen === false) this.closeIdle();
      throw toStoreError(error);
    } finally {
      this.#release(connection);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.closeIdle();
  }

  /** Forces new connections: idle ones to an unresponsive server would not report their loss. */
  closeIdle(): void {
    for (const connection of this.#free) connection?.close();
    this.#free = this.#free.map(() => null);
  }

  async #wait(): Promise<Connection | null> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection | null>();
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
      reject(new StoreError('unavailable', 'PostgreSQL: all connections for reading are in use'));
    }, ACQUIRE_TIMEOUT_MS);
    this.#waiting.push(resolve);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #release(used: Connection | null): void {
    if (this.#isClosed) used?.close();
    const open = used?.isOpen === true ? used : null;
    const next = this.#waiting.shift();
    if (next !== undefined) next(open);
    else if (open === null) this.#free.unshift(null);
    else this.#free.push(open);
  }
}
