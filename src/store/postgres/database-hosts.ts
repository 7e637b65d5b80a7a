/**
 * The connections of this process, all to one host of the list. The host is chosen once, and left as a whole: if it is
 * lost, stops accepting writes, or lacks an entry that this process has seen, every connection to it is closed before
 * another host is used. INVARIANT: no two open connections are to different hosts.
 */
import { StoreError } from '../errors.ts';
import type { LogLocation, SeenEntry } from '../stored-data.ts';
import { Connection } from './connection.ts';
import type { PostgresAddress } from './database-url.ts';
import type { Purpose } from './driver.ts';
import { sqlStateOf } from './errors.ts';
import { LostEntryError } from './fence.ts';
import { type ChosenHost, chooseHost } from './host-choice.ts';

/** Callers receive the same error for this time after a failure, so that they do not flood a server that recovers. */
const RETRY_INTERVAL_MS = 200;
/** The server shuts down or starts. SOURCE: postgresql.org/docs/current/errcodes-appendix.html. */
const OPERATOR_INTERVENTION = '57P';

export class Hosts {
  readonly #address: PostgresAddress;
  #seen: SeenEntry | null;
  #current: ChosenHost | null = null;
  /** The host that was used last, even if it was left since. */
  #used: ChosenHost | null = null;
  #choosing: Promise<ChosenHost> | null = null;
  #failed: { readonly error: unknown; readonly until: number } | null = null;
  #unanswered: readonly string[] = [];
  readonly #connections = new Set<Connection>();

  constructor(address: PostgresAddress, seen: SeenEntry | null = null) {
    this.#address = address;
    this.#seen = seen;
    const [only, ...others] = address.hosts;
    if (only !== undefined && others.length === 0) this.#current = { host: only, system: '', timeline: 0 };
  }

  get seen(): SeenEntry | null {
    return this.#seen;
  }

  /** Every server that is used from now on must have the entry. */
  see(entry: SeenEntry | null): void {
    this.#seen = entry;
  }

  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  /** The location for a thread or process that must use the same host. @throws StoreError if none can be used */
  async locate(): Promise<LogLocation> {
    const { host } = this.#current ?? (await this.#choose());
    return { kind: 'postgres', address: { ...this.#address, hosts: [host] }, seen: this.#seen };
  }

  async connect(purpose: Purpose): Promise<Connection> {
    if (this.#failed !== null && performance.now() < this.#failed.until) throw this.#failed.error;
    try {
      return await this.#connect(purpose);
    } catch (error) {
      this.#failed = { error, until: performance.now() + RETRY_INTERVAL_MS };
      throw error;
    }
  }

  /** Runs the work, and leaves the server if it lacks an entry that this process has seen. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof LostEntryError && this.#connections.has(error.connection)) this.#leave(this.#current);
      throw error;
    }
  }

  async #connect(purpose: Purpose): Promise<Connection> {
    for (let isFirst = true; ; isFirst = false) {
      const current = this.#current ?? (await this.#choose());
      try {
        const connection = await Connection.open(this.#address, purpose, current.host);
        if (this.#current === current) return this.#keep(connection);
        connection.close();
      } catch (error) {
        // Connections that still work are kept if there is no other host.
        if (!isLost(error) || this.#address.hosts.length === 1) throw error;
        this.#leave(current);
        if (!isFirst) throw error;
      }
    }
  }

  #keep(connection: Connection): Connection {
    this.#connections.add(connection);
    connection.onClose(() => this.#connections.delete(connection));
    return connection;
  }

  /** Callers at the same time share one choice. */
  #choose(): Promise<ChosenHost> {
    this.#choosing ??= chooseHost(this.#address, this.#seen, this.#used)
      .then(({ chosen, unanswered }) => {
        this.#current = chosen;
        this.#used = chosen;
        this.#unanswered = unanswered;
        return chosen;
      })
      .finally(() => {
        this.#choosing = null;
      });
    return this.#choosing;
  }

  #leave(left: ChosenHost | null): void {
    if (left !== this.#current) return;
    if (this.#address.hosts.length > 1) this.#current = null;
    for (const connection of [...this.#connections]) connection.close();
  }
}

/** Whether the host is gone or no primary. WHY not any error: a primary without a free connection is the primary. */
function isLost(error: unknown): boolean {
  const state = sqlStateOf(error);
  return error instanceof StoreError && (state === null || state.startsWith(OPERATOR_INTERVENTION));
}

/** The address with the one host to use, for a tool that connects several times. @throws StoreError */
export async function pinHost(address: PostgresAddress): Promise<PostgresAddress> {
  if (address.hosts.length === 1) return address;
  const { chosen } = await chooseHost(address, null, null);
  return { ...address, hosts: [chosen.host] };
}
