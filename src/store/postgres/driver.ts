/** Options of the driver: one connection to one host, with nothing from the environment but a password. */
import { createConnection, type Socket } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import postgres from 'postgres';
import { type DatabaseHost, type PostgresAddress, type SslMode, sslModeFor } from './database-url.ts';

/** Session settings. They are explicit, so that defaults of the role or the database cannot weaken them. */
const SETTINGS = {
  search_path: 'leasehold',
  /** A commit returns once it is on disk and on the synchronous standbys. */
  synchronous_commit: 'on',
  TimeZone: 'UTC',
  default_transaction_isolation: 'read committed',
  /** A suspended node must not hold the lock. */
  idle_in_transaction_session_timeout: 2000,
  /** Longer, so that a node that waits for a suspended one obtains the lock after it. */
  lock_timeout: 3000,
} as const;

/** The purpose of a connection decides how long a statement may take. */
const SETTINGS_BY_PURPOSE = {
  // INVARIANT: no time-out for a commit. A cancelled wait for a standby leaves a visible commit that failover can lose.
  writing: { statement_timeout: 0 },
  // Custom plans: a generic plan scans the whole table for agents with few leases.
  reading: { statement_timeout: 10_000, plan_cache_mode: 'force_custom_plan' },
  verifying: { statement_timeout: 120_000, plan_cache_mode: 'force_custom_plan' },
} as const;

export type Purpose = keyof typeof SETTINGS_BY_PURPOSE;

/**
 * How long a connection may take. WHY longer for a verification: its threads have the lowest priority, and on a busy
 * machine they wait for the processor and not for the server.
 */
export const CONNECT_TIMEOUT_MS: Readonly<Record<Purpose, number>> = {
  writing: 5000,
  reading: 5000,
  verifying: 60_000,
};

/** How long the response to a read may take. It is longer than the server's own limit of a statement. */
export const RESPONSE_TIMEOUT_MS: Readonly<Record<Exclude<Purpose, 'writing'>, number>> = {
  reading: 12_000,
  verifying: 130_000,
};

const KEEP_ALIVE_S = 5;
/** Statements of a batch that are sent without waiting: several per operation. */
const MAX_PIPELINED = 5000;
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
/** How long the termination message may take before the socket is destroyed. */
const TERMINATE_GRACE_MS = 500;

type Types = { number: postgres.PostgresType<number> };
type Listeners = Required<Pick<postgres.Options<Types>, 'onnotice' | 'onclose'>>;

interface ConnectRequest {
  readonly address: PostgresAddress;
  readonly host: DatabaseHost;
  readonly purpose: Purpose;
  readonly signal: AbortSignal;
}

/** Nothing is sent before the first statement. */
export function connect(request: ConnectRequest, listeners: Listeners): postgres.Sql<{ number: number }> {
  const { address, host, purpose } = request;
  const options: postgres.Options<Types> = {
    database: address.database,
    user: address.user,
    pass: address.password ?? '',
    ssl: tlsOptions(sslModeFor(address, host), host, address),
    max: 1,
    fetch_types: false,
    connect_timeout: 0,
    keep_alive: KEEP_ALIVE_S,
    idle_timeout: 0,
    max_lifetime: null,
    connection: { application_name: address.applicationName, ...SETTINGS, ...SETTINGS_BY_PURPOSE[purpose] },
    // Sequence numbers and times are safe integers.
    types: { number: { to: 20, from: [20], parse: Number, serialize: String } },
    // Explicit, so that the driver does not read it from the environment.
    prepare: true,
    debug: false,
    ...listeners,
  };
  // It overrides the choice of the host, and the driver has no option against it.
  delete process.env['PGTARGETSESSIONATTRS'];
  return postgres({ ...options, ...untypedOptions(request) });
}

/** Options that the driver's types lack. WHY arrays: a string with colons would be split into host and port. */
function untypedOptions({ host, signal }: ConnectRequest): object {
  const target = host.kind === 'unix' ? { path: host.socket } : { host: [host.host], port: [host.port] };
  let isConnected = false;
  return {
    ...target,
    max_pipeline: MAX_PIPELINED,
    sslnegotiation: null,
    // WHY: if a server accepts connections and drops them, the driver reconnects in a loop without a pause.
    socket: (): Promise<Socket> => {
      if (isConnected) return Promise.reject(Object.assign(new Error('dropped'), { code: 'CONNECTION_DROPPED' }));
      isConnected = true;
      return openSocket(host, signal);
    },
  };
}

function openSocket(host: DatabaseHost, signal: AbortSignal): Promise<Socket> {
  const target = host.kind === 'unix' ? { path: host.socket } : { host: host.host, port: host.port };
  // The buffer holds a whole batch, so that its rows are sent without waiting for the socket.
  const options = { ...target, noDelay: true, writableHighWaterMark: MAX_BUFFERED_BYTES };
  return new Promise((resolve, reject) => {
    const socket = createConnection(options, () => {
      socket.off('error', reject);
      // The driver uses it as TLS server name.
      resolve(Object.assign(socket, { host: host.kind === 'unix' ? undefined : host.host }));
    });
    socket.once('error', reject);
    signal.addEventListener('abort', () => setTimeout(() => socket.destroy(), TERMINATE_GRACE_MS).unref(), {
      once: true,
    });
  });
}

function tlsOptions(
  mode: SslMode,
  host: DatabaseHost,
  { rootCertificates }: PostgresAddress,
): ConnectionOptions | false {
  const roots = rootCertificates === null ? {} : { ca: rootCertificates };
  switch (mode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...roots, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full': {
      // WHY: for an IP address the driver would check the certificate against the name localhost.
      const name = host.kind === 'unix' ? '' : host.host;
      return {
        ...roots,
        rejectUnauthorized: true,
        checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      };
    }
  }
}
