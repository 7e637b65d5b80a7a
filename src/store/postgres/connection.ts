/**
 * One connection to PostgreSQL, from its opening to its end. WHY not the driver's pool: it connects again by itself, and what was
 * meant for a transaction that is gone would run outside of any. Here nothing ever runs on a connection but the one it was meant
 * for, and whoever waits for an answer is told when it is lost.
 */
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import postgres from 'postgres';
import { StoreFailure } from '../port.ts';
import type { Row } from '../rows.ts';
import { type Host, type PostgresAddress, type SslMode, sslModeFor } from './address.ts';
import { toFailure } from './failures.ts';

/** What a role may be told of by its own settings is told here, so that no default of a database weakens it. */
const SETTINGS = {
  search_path: 'leasehold',
  TimeZone: 'UTC',
  default_transaction_isolation: 'read committed',
  /** A node that was stopped must not hold the turn. */
  idle_in_transaction_session_timeout: 2000,
  /** Longer: who waits behind such a node gets the turn after it. */
  lock_timeout: 3000,
} as const;

/** What a connection is for decides how long a statement may take. */
const SETTINGS_OF = {
  // INVARIANT: none for a commit. One that waits for a standby would be cut short, be seen by all, and be lost with this server.
  turns: { statement_timeout: 0 },
  // Each look is planned for what it asks: one plan for all would go through everything for the one who has little.
  reading: { statement_timeout: 10_000, plan_cache_mode: 'force_custom_plan' },
} as const;

type Purpose = keyof typeof SETTINGS_OF;

const OPENS_WITHIN_S = 3;
const KEEP_ALIVE_S = 5;
/** In the driver's own words, a reason to look at the next host. */
const READ_ONLY = 'it takes no writes: it is a standby';
const NO_TLS =
  'PostgreSQL: the server broke off where TLS begins. Does it speak it (ssl = on)? On a network that you trust say sslmode=disable';

type Types = { number: postgres.PostgresType<number> };
type Rows = readonly Row[];
/** What a statement can be given. */
export type Value = string | number | Uint8Array | null;

export class Connection {
  readonly #pool: postgres.Sql<{ number: number }>;
  #sql: postgres.ReservedSql<{ number: number }> | null = null;
  readonly #waiting = new Set<(error: unknown) => void>();
  #isPreparing = false;
  #lost: unknown = null;
  /** Since the last look: what the server said beside its answers. */
  #notices: string[] = [];

  private constructor(address: PostgresAddress, host: Host, purpose: Purpose) {
    const options: postgres.Options<Types> = {
      path: host.kind === 'unix' ? host.socket : undefined,
      host: host.kind === 'unix' ? undefined : host.host,
      port: host.kind === 'unix' ? undefined : host.port,
      database: address.database,
      user: address.user,
      pass: address.password ?? '',
      ssl: tlsOptions(sslModeFor(address, host), host, address),
      max: 1,
      fetch_types: false,
      connect_timeout: OPENS_WITHIN_S,
      keep_alive: KEEP_ALIVE_S,
      idle_timeout: 0,
      max_lifetime: null,
      connection: { application_name: address.applicationName, ...SETTINGS, ...SETTINGS_OF[purpose] },
      // Ordinals and times fit a number.
      types: { number: { to: 20, from: [20], parse: Number, serialize: String } },
      // Not from the environment.
      prepare: true,
      debug: false,
      onnotice: ({ code = '', message = '' }) => this.#notices.push(`${code} ${message}`),
      onclose: () => this.#lose('CONNECTION_LOST'),
    };
    this.#pool = postgres(options);
  }

  /**
   * To the host that first answers and, where that is asked for, takes writes. All are asked at once: one that is gone without a
   * word must not hold up the one that took over. @throws StoreFailure
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
      if (failures.length === 1 || !failures.every((failure) => failure instanceof StoreFailure)) throw first;
      const said = failures.map(({ message }) => message.replace(/^PostgreSQL: /, '')).join('; ');
      throw new StoreFailure('unavailable', `PostgreSQL: no host takes writes (${said})`, {
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
      throw isEncrypted && isCutOff(error)
        ? new StoreFailure('unavailable', NO_TLS, { cause: error })
        : toFailure(error);
    }
  }

  async #begin({ sessionAttributes }: PostgresAddress): Promise<void> {
    const timer = setTimeout(() => this.close(), OPENS_WITHIN_S * 1000);
    try {
      // WHY before the reservation: the driver never gives out a connection that has not answered anything.
      const [row] = await this.#watch(
        this.#pool`SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') AS is_read_only`,
      );
      const takesWrites = row?.['is_standby'] === false && row['is_read_only'] === 'off';
      if (sessionAttributes === 'read-write' && !takesWrites)
        throw new StoreFailure('unavailable', `PostgreSQL: ${READ_ONLY}`);
      this.#sql = await this.#pool.reserve();
    } finally {
      clearTimeout(timer);
    }
  }

  get isOpen(): boolean {
    return this.#lost === null;
  }

  /**
   * Sends a statement; those sent in one go, without waiting, share a round trip and are done in their order. Resolves to its rows.
   * @throws what the driver throws; see `toFailure`
   */
  query(text: TemplateStringsArray, ...values: readonly Value[]): Promise<Rows> {
    if (this.#lost !== null || this.#sql === null) return Promise.reject(this.#lost);
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
    if (this.#lost !== null || this.#sql === null) throw this.#lost;
    return this.#watch(this.#sql.unsafe<Row[]>(text, [...values], { prepare: true }));
  }

  /** Several statements of our own, without values, in one go. @throws as `query` */
  async script(text: string): Promise<void> {
    if (this.#lost !== null || this.#sql === null) throw this.#lost;
    await this.#watch(this.#sql.unsafe<Row[]>(text));
  }

  /** What the server said beside its answers since the last look, each with its code in front. */
  takeNotices(): readonly string[] {
    return this.#notices.splice(0);
  }

  /** Ends it at once; whoever waits is told. */
  close(): void {
    this.#lose('CONNECTION_CLOSED');
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

  #lose(code: string): void {
    if (this.#lost !== null) return;
    const failure = Object.assign(new Error('the connection was lost'), { code });
    this.#lost = failure;
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
export async function within<T>(connection: Connection, milliseconds: number, answer: Promise<T>): Promise<T> {
  const watch = setTimeout(() => connection.close(), milliseconds);
  try {
    return await answer;
  } finally {
    clearTimeout(watch);
  }
}

/** A server without TLS says so by one letter, which the driver takes no notice of. */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
}

function tlsOptions(mode: SslMode, host: Host, { rootCertificates }: PostgresAddress): ConnectionOptions | false {
  const roots = rootCertificates === null ? {} : { ca: rootCertificates };
  switch (mode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...roots, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full': {
      // WHY: by itself the driver holds the certificate of an address against the name localhost.
      const name = host.kind === 'unix' ? '' : host.host;
      return {
        ...roots,
        rejectUnauthorized: true,
        checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      };
    }
  }
}
