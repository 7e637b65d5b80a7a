/**
 * One connection to PostgreSQL, from its opening to its end. WHY not the driver's pool: it connects again by itself, and what was
 * meant for a transaction that is gone would run outside of any. Here nothing ever runs on a connection but the one it was meant
 * for, and whoever waits for an answer is told when it is lost.
 */
import type postgres from 'postgres';
import type { Row } from '../decode-rows.ts';
import { StoreError } from '../store.ts';
import { type Host, type PostgresAddress, sslModeFor } from './address.ts';
import { connect, type Purpose } from './driver.ts';
import { toStoreError } from './errors.ts';

const CONNECT_TIMEOUT_S = 5;
/** In the driver's own words, a reason to look at the next host. */
const READ_ONLY = 'it takes no writes: it is a standby';
const NO_TLS =
  'PostgreSQL: the server broke off where TLS begins. Does it speak it (ssl = on)? On a network that you trust say sslmode=disable';

type Rows = readonly Row[];
/** What a statement can be given. */
export type Value = string | number | Uint8Array | null;

export class Connection {
  readonly #pool: postgres.Sql<{ number: number }>;
  #sql: postgres.ReservedSql<{ number: number }> | null = null;
  readonly #waiting = new Set<(error: unknown) => void>();
  readonly #ending = new AbortController();
  #isPreparing = false;
  #failure: unknown = null;
  /** Since the last look: what the server said beside its answers. */
  #notices: string[] = [];

  private constructor(address: PostgresAddress, host: Host, purpose: Purpose) {
    const { signal } = this.#ending;
    this.#pool = connect(
      { address, host, purpose, signal },
      {
        onnotice: ({ code = '', message = '' }) => this.#notices.push(`${code} ${message}`),
        onclose: () => this.#fail('CONNECTION_LOST'),
      },
    );
  }

  /**
   * To the host that first answers and, where that is asked for, takes writes. All are asked at once: one that is gone without a
   * word must not hold up the one that took over. @throws StoreError
   */
  static async open(address: PostgresAddress, purpose: Purpose): Promise<Connection> {
    const tried = address.hosts.map((host) => Connection.#openTo(address, host, purpose));
    try {
      const first = await Promise.any(tried);
      for (const other of tried) void other.then((late) => late !== first && late.close()).catch(() => undefined);
      return first;
    } catch (error) {
      const failures: unknown[] = error instanceof AggregateError ? error.errors : [error];
      const [first] = failures;
      if (failures.length === 1 || !failures.every((failure) => failure instanceof StoreError)) throw first;
      const said = failures.map(({ message }) => message.replace(/^PostgreSQL: /, '')).join('; ');
      throw new StoreError('unavailable', `PostgreSQL: no host takes writes (${said})`, {
        cause: failures[0]?.cause,
      });
    }
  }

  static async #openTo(address: PostgresAddress, host: Host, purpose: Purpose): Promise<Connection> {
    const connection = new Connection(address, host, purpose);
    try {
      await connection.#begin(address);
      return connection;
    } catch (error) {
      connection.close();
      const isEncrypted = sslModeFor(address, host) !== 'disable';
      throw isEncrypted && isConnectionReset(error)
        ? new StoreError('unavailable', NO_TLS, { cause: error })
        : toStoreError(error);
    }
  }

  async #begin({ sessionAttributes }: PostgresAddress): Promise<void> {
    const timer = setTimeout(() => this.close(), CONNECT_TIMEOUT_S * 1000);
    try {
      // WHY before the reservation: the driver never gives out a connection that has not answered anything.
      const [row] = await this.#watch(
        this.#pool`SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') AS is_read_only`,
      );
      const takesWrites = row?.['is_standby'] === false && row['is_read_only'] === 'off';
      if (sessionAttributes === 'read-write' && !takesWrites)
        throw new StoreError('unavailable', `PostgreSQL: ${READ_ONLY}`);
      this.#sql = await this.#pool.reserve();
    } finally {
      clearTimeout(timer);
    }
  }

  get isOpen(): boolean {
    return this.#failure === null;
  }

  /**
   * Sends a statement; those sent in one go, without waiting, share a round trip and are done in their order. Resolves to its rows.
   * @throws what the driver throws; see `toStoreError`
   */
  query(text: TemplateStringsArray, ...values: readonly Value[]): Promise<Rows> {
    if (this.#failure !== null || this.#sql === null) return Promise.reject(this.#failure);
    const query = this.#sql<Row[]>(text, ...values);
    return this.#watch(this.#isPreparing ? query.describe().then(() => []) : query);
  }

  /** What the work asks is not done but prepared: from then on each such statement is one message, and waits for nothing. */
  async prepare(work: () => Promise<unknown>): Promise<void> {
    this.#isPreparing = true;
    try {
      await work();
    } finally {
      this.#isPreparing = false;
    }
  }

  /** A statement that was put together from names of our own; its values are bound all the same. @throws as `query` */
  async run(text: string, values: readonly Value[]): Promise<Rows> {
    if (this.#failure !== null || this.#sql === null) throw this.#failure;
    return this.#watch(this.#sql.unsafe<Row[]>(text, [...values], { prepare: true }));
  }

  /** Several statements of our own, without values, in one go. @throws as `query` */
  async script(text: string): Promise<void> {
    if (this.#failure !== null || this.#sql === null) throw this.#failure;
    await this.#watch(this.#sql.unsafe<Row[]>(text));
  }

  /** What the server said beside its answers since the last look, each with its code in front. */
  takeNotices(): readonly string[] {
    return this.#notices.splice(0);
  }

  /** Ends it at once; whoever waits is told. */
  close(): void {
    this.#fail('CONNECTION_CLOSED');
  }

  /** WHY: the driver forgets what it had not sent yet when a connection is lost, and never answers. */
  #watch(query: PromiseLike<Rows>): Promise<Rows> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      query.then(
        (rows) => {
          this.#waiting.delete(reject);
          resolve(rows);
        },
        (error: unknown) => {
          this.#waiting.delete(reject);
          reject(error);
        },
      );
    });
  }

  #fail(code: string): void {
    if (this.#failure !== null) return;
    const failure = Object.assign(new Error('the connection was lost'), { code });
    this.#failure = failure;
    this.#ending.abort();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    // What the driver says first is more exact.
    setImmediate(() => {
      for (const reject of waiting) reject(failure);
    });
    void this.#pool.end({ timeout: 0 }).catch(() => undefined);
  }
}

/** Gives the connection up where the answer takes longer: whoever waits for it is told. */
export async function withDeadline<T>(connection: Connection, milliseconds: number, answer: Promise<T>): Promise<T> {
  const watch = setTimeout(() => connection.close(), milliseconds);
  try {
    return await answer;
  } finally {
    clearTimeout(watch);
  }
}

/** A server without TLS says so by one letter, which the driver takes no notice of. */
function isConnectionReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
}
