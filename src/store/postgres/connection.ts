/**
 * A single connection to PostgreSQL: a statement runs on it or fails, and a lost connection rejects all pending
 * statements. WHY not the driver's pool of several: it reports a lost connection and a slow one without telling whose
 * they are, and its transactions take two round trips more.
 */
import type postgres from 'postgres';
import { StoreError } from '../errors.ts';
import { type Procedure, type Row, type Statement, sql, type Value } from '../statement.ts';
import { type DatabaseHost, describeHost, type PostgresAddress, sslModeFor } from './database-url.ts';
import { CONNECT_TIMEOUT_MS, connect, type Purpose } from './driver.ts';
import { toStoreError } from './errors.ts';

/** A timer that is later indicates that this process was paused, not that the server is slow. */
const MAX_LATENESS_MS = 1000;
/** The time for the responses that came during a pause. */
const CATCH_UP_MS = 5000;
export const READ_ONLY = 'the server is a read-only standby';
const NO_TLS =
  'PostgreSQL: the server closed the connection at the start of TLS. Set ssl = on there, or sslmode=disable on a network that you trust';

type Rows = readonly Row[];

/** WHY not the driver's tagged templates: it keeps an error with a stack for every template object, even a new one. */
const PREPARED = { prepare: true, simple: false };

export class Connection {
  /** Host and port, as messages name the server. */
  readonly host: string;
  readonly #sql: postgres.Sql<{ number: number }>;
  readonly #waiting = new Set<(error: unknown) => void>();
  readonly #ending = new AbortController();
  #isPreparing = false;
  #failure: unknown = null;
  /** Notices of the server since the last `takeNotices`. */
  #notices: string[] = [];
  #onClose: () => void = () => undefined;

  private constructor(address: PostgresAddress, host: DatabaseHost, purpose: Purpose) {
    this.host = describeHost(host);
    const { signal } = this.#ending;
    this.#sql = connect(
      { address, host, purpose, signal },
      {
        onnotice: ({ code = '', message = '' }) => this.#notices.push(`${code} ${message}`),
        onclose: () => this.#fail('CONNECTION_LOST'),
      },
    );
  }

  /**
   * Connects to one host, by default the first; unless `sessionAttributes` is `any`, it must accept writes. `Hosts`
   * chooses among several. @throws StoreError
   */
  static async open(address: PostgresAddress, purpose: Purpose, host = address.hosts[0]): Promise<Connection> {
    if (host === undefined) throw new StoreError('unavailable', 'PostgreSQL: the list of hosts is empty');
    const connection = new Connection(address, host, purpose);
    try {
      await connection.#begin(address, CONNECT_TIMEOUT_MS[purpose]);
      return connection;
    } catch (error) {
      connection.close();
      const isEncrypted = sslModeFor(address, host) !== 'disable';
      throw isEncrypted && isConnectionReset(error)
        ? new StoreError('unavailable', NO_TLS, { cause: error })
        : toStoreError(error);
    }
  }

  async #begin({ sessionAttributes }: PostgresAddress, withinMs: number): Promise<void> {
    const timer = closeAfter(this, withinMs, true);
    try {
      const [row] = await this
        .query`SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') AS is_read_only`;
      const takesWrites = row?.['is_standby'] === false && row['is_read_only'] === 'off';
      if (sessionAttributes === 'read-write' && !takesWrites)
        throw new StoreError('unavailable', `PostgreSQL: ${READ_ONLY}`);
    } finally {
      timer.clear();
    }
  }

  get isOpen(): boolean {
    return this.#failure === null;
  }

  query(texts: TemplateStringsArray, ...values: readonly (Value | Statement)[]): Promise<Rows> {
    return this.execute(sql(texts, ...values));
  }

  /**
   * Sends a statement and resolves to its rows. Statements that are sent without awaiting share a round trip and run in
   * order.
   * @throws errors of the driver; see `toStoreError`
   */
  execute({ parts, values }: Statement): Promise<Rows> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const text = parts.reduce((before, part, index) => `${before}$${index}${part}`);
    const query = this.#sql.unsafe<Row[]>(text, [...values], PREPARED);
    return this.#watch(this.#isPreparing ? query.describe().then(() => []) : query);
  }

  async run<T>(procedure: Procedure<T>): Promise<T> {
    let step = procedure.next();
    while (!step.done) step = procedure.next(await this.execute(step.value));
    return step.value;
  }

  /** Prepares the statements of the work without running them, which saves their first round trip later. */
  async prepare(work: () => Promise<unknown>): Promise<void> {
    this.#isPreparing = true;
    try {
      await work();
    } finally {
      this.#isPreparing = false;
    }
  }

  /** Runs several statements without parameters. @throws as `query` */
  async script(text: string): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    await this.#watch(this.#sql.unsafe<Row[]>(text));
  }

  /** The notices since the last call, each with its SQLSTATE in front. */
  takeNotices(): readonly string[] {
    return this.#notices.splice(0);
  }

  /** Called once, when the connection is closed or lost. */
  onClose(listener: () => void): void {
    if (this.#failure === null) this.#onClose = listener;
    else listener();
  }

  /** Closes the connection immediately; pending statements reject. */
  close(): void {
    this.#fail('CONNECTION_CLOSED');
  }

  /** WHY: the driver never settles statements that were unsent when the connection was lost. */
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
    this.#onClose();
    this.#ending.abort();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    // Errors of the driver are more specific, so let them reject first.
    setImmediate(() => {
      for (const reject of waiting) reject(failure);
    });
    void this.#sql.end({ timeout: 0 }).catch(() => undefined);
  }
}

/**
 * Closes the connection if the response takes longer, which rejects it. `pauses` says whether a pause of this process
 * counts: after one, a response that is already here may still be read, unless the result would be too old.
 */
export async function withDeadline<T>(
  connection: Connection,
  milliseconds: number,
  response: Promise<T>,
  pauses: 'count' | 'do not count' = 'count',
): Promise<T> {
  const timer = closeAfter(connection, milliseconds, pauses === 'do not count');
  try {
    return await response;
  } finally {
    timer.clear();
  }
}

/** Closes the connection after that time, unless it is cleared before; once more later if this process was paused. */
function closeAfter(connection: Connection, milliseconds: number, sparesPauses: boolean): { clear(): void } {
  const dueAt = performance.now() + milliseconds;
  let timer = setTimeout(() => {
    const isLate = performance.now() - dueAt >= MAX_LATENESS_MS;
    if (sparesPauses && isLate) timer = setTimeout(() => connection.close(), CATCH_UP_MS);
    else connection.close();
  }, milliseconds);
  return { clear: () => clearTimeout(timer) };
}

/** The driver ignores the refusal of TLS by a server, and the connection is reset. */
function isConnectionReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
}
