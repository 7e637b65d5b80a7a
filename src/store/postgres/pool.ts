/**
 * Connections for reads outside transactions. When all slots are in use, callers wait, up to a time-out. A failed
 * connection is not reused. INVARIANT: a result comes from a server whose log has the last entry that this process has
 * seen.
 */
import { StoreError } from '../errors.ts';
import { type Connection, withDeadline } from './connection.ts';
import { type Purpose, RESPONSE_TIMEOUT_MS } from './driver.ts';
import { toStoreError } from './errors.ts';
import { assertContains, readFenced } from './fence.ts';
import type { Hosts } from './hosts.ts';

const ACQUIRE_TIMEOUT_MS = 5000;

export class Pool {
  readonly #hosts: Hosts;
  readonly #purpose: Exclude<Purpose, 'writing'>;
  readonly #size: number;
  #slots: number;
  readonly #idle: Connection[] = [];
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(hosts: Hosts, slots: number, purpose: Exclude<Purpose, 'writing'> = 'reading') {
    this.#hosts = hosts;
    this.#purpose = purpose;
    this.#size = slots;
    this.#slots = slots;
  }

  get inUse(): number {
    return this.#size - this.#slots;
  }

  /** Callers that wait for a connection. */
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
    await this.#acquireSlot();
    let connection: Connection | null = null;
    try {
      connection = await this.#acquire();
      const working = connection;
      return await this.#hosts.guard(() => withDeadline(working, withinMs, work(working), 'do not count'));
    } catch (error) {
      // Idle connections are probably lost too.
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

  /** Forces new connections: idle ones to an unresponsive server would not report their loss. */
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
    return this.#hosts.connect(this.#purpose);
  }

  #release(connection: Connection): void {
    if (this.#isClosed) connection.close();
    else if (connection.isOpen) this.#idle.push(connection);
  }
}
