/** How the driver is told to connect: one connection to one host, and nothing from the environment but a password. */
import { createConnection, type Socket } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import postgres from 'postgres';
import { type Host, type PostgresAddress, type SslMode, sslModeFor } from './address.ts';

/** What a role may be told of by its own settings is told here, so that no default of a database weakens it. */
const SETTINGS = {
  search_path: 'leasehold',
  /** What is answered is on disk, and with the standbys that the server waits for. */
  synchronous_commit: 'on',
  TimeZone: 'UTC',
  default_transaction_isolation: 'read committed',
  /** A node that was stopped must not hold the turn. */
  idle_in_transaction_session_timeout: 2000,
  /** Longer: who waits behind such a node gets the turn after it. */
  lock_timeout: 3000,
} as const;

/** What a connection is for decides how long a statement may take. */
const SETTINGS_BY_PURPOSE = {
  // INVARIANT: none for a commit. One that waits for a standby would be cut short, be seen by all, and be lost with this server.
  writing: { statement_timeout: 0 },
  // Each look is planned for what it asks: one plan for all would go through everything for the one who has little.
  reading: { statement_timeout: 10_000, plan_cache_mode: 'force_custom_plan' },
} as const;

export type Purpose = keyof typeof SETTINGS_BY_PURPOSE;

const KEEP_ALIVE_S = 5;
/** Statements of a turn that are sent without waiting: some for each of its operations. */
const MAX_PIPELINED = 5000;
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
/** To tell the server that it ends; one that does not listen is left. */
const TERMINATE_GRACE_MS = 500;

type Types = { number: postgres.PostgresType<number> };
type Listeners = Required<Pick<postgres.Options<Types>, 'onnotice' | 'onclose'>>;

/** Who is spoken to, what for, and until when: the signal ends it, whatever is under way. */
interface ConnectRequest {
  readonly address: PostgresAddress;
  readonly host: Host;
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
    // Ordinals and times fit a number.
    types: { number: { to: 20, from: [20], parse: Number, serialize: String } },
    // Not from the environment.
    prepare: true,
    debug: false,
    ...listeners,
  };
  // It would change whom the driver speaks to, and the driver can't be told otherwise.
  delete process.env['PGTARGETSESSIONATTRS'];
  return postgres({ ...options, ...untypedOptions(request) });
}

/** Options that the driver's types do not know. WHY lists: a text with colons would be taken for a host and its port. */
function untypedOptions({ host, signal }: ConnectRequest): object {
  const target = host.kind === 'unix' ? { path: host.socket } : { host: [host.host], port: [host.port] };
  let isConnected = false;
  return {
    ...target,
    max_pipeline: MAX_PIPELINED,
    sslnegotiation: null,
    // WHY not the driver's own: where a server takes a connection and drops it, the driver dials again and again, without a pause.
    socket: (): Promise<Socket> => {
      if (isConnected) return Promise.reject(Object.assign(new Error('dropped'), { code: 'CONNECTION_DROPPED' }));
      isConnected = true;
      return openSocket(host, signal);
    },
  };
}

/** @throws what the operating system says */
function openSocket(host: Host, signal: AbortSignal): Promise<Socket> {
  const target = host.kind === 'unix' ? { path: host.socket } : { host: host.host, port: host.port };
  // A turn's rows are written in one go, whatever they hold.
  const options = { ...target, noDelay: true, writableHighWaterMark: MAX_BUFFERED_BYTES };
  return new Promise((resolve, reject) => {
    const socket = createConnection(options, () => {
      socket.off('error', reject);
      // By it the driver knows whose certificate to ask for.
      resolve(Object.assign(socket, { host: host.kind === 'unix' ? undefined : host.host }));
    });
    socket.once('error', reject);
    signal.addEventListener('abort', () => setTimeout(() => socket.destroy(), TERMINATE_GRACE_MS).unref(), {
      once: true,
    });
  });
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
