/**
 * Parses a PostgreSQL connection URL. Strict: unknown parts are rejected, and errors never quote the URL, which may
 * contain a password. SOURCE: postgresql.org/docs/current/libpq-connect.html, "Connection URIs".
 */

import { readFileSync } from 'node:fs';
import { isLoopbackHost } from '../../core/ip-network.ts';
import { UsageError } from '../../platform/errors.ts';

export type DatabaseHost =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly socket: string };

/** `verify-full` checks the certificate and the host name, `verify-ca` only the certificate, `require` neither. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];

/** Plain data, so that it can be passed to a thread. May contain a password: never print it. */
export interface PostgresAddress {
  /** At least one host; `Hosts` chooses one of several. */
  readonly hosts: readonly DatabaseHost[];
  readonly database: string;
  readonly user: string;
  readonly password: string | null;
  /** Null: `verify-full`, except plain text for loopback and Unix sockets. */
  readonly sslMode: SslMode | null;
  /** PEM certificates that replace those of the system. */
  readonly rootCertificates: string | null;
  /** `any` also accepts a read-only server. */
  readonly sessionAttributes: 'any' | 'read-write';
  readonly applicationName: string;
}

const PARAMETERS = [
  'sslmode',
  'sslrootcert',
  'target_session_attrs',
  'application_name',
  'host',
  'connect_timeout',
] as const;
const DEFAULT_PORT = 5432;
export const DEFAULT_APPLICATION_NAME = 'leasehold';

export function parseAddress(url: string): PostgresAddress {
  const match = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(url);
  if (match === null) throw new UsageError('must be postgres://USER:PASSWORD@HOST:PORT/DATABASE');
  const [, userInfo = '', authority = '', path = '', query = ''] = match;
  const [user = '', password, ...more] = userInfo.split(':').map((part) => decode(part, 'user and password'));
  if (user === '' || more.length > 0)
    throw new UsageError('must name a user, as in postgres://USER:PASSWORD@HOST/DATABASE');
  const parameters = parseParameters(query);
  const given = parameters.get('host') ?? decode(authority, 'host');
  const sslMode = parameters.get('sslmode') ?? null;
  if (sslMode !== null && !isSslMode(sslMode)) throw new UsageError(`sslmode must be one of ${SSL_MODES.join(', ')}`);
  const attributes = parameters.get('target_session_attrs') ?? 'read-write';
  if (attributes !== 'any' && attributes !== 'read-write' && attributes !== 'primary') {
    throw new UsageError('target_session_attrs must be read-write, primary or any');
  }
  return {
    hosts: given.split(',').map(parseHost),
    database: decode(path, 'database') || user,
    user,
    password: password ?? null,
    sslMode,
    rootCertificates: readRoots(parameters.get('sslrootcert')),
    sessionAttributes: attributes === 'any' ? 'any' : 'read-write',
    applicationName: parameters.get('application_name') ?? DEFAULT_APPLICATION_NAME,
  };
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(`the ${what} must be percent-encoded`);
  }
}

function parseParameters(query: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', value = ''] = pair.split(/=(.*)/s).map((part) => decode(part, 'parameters'));
    if (!PARAMETERS.some((known) => known === name)) {
      throw new UsageError(`has an unknown parameter; the known ones are ${PARAMETERS.join(', ')}`);
    }
    if (parameters.has(name) || value === '') throw new UsageError(`${name} must be given once, with a value`);
    parameters.set(name, value);
  }
  return parameters;
}

function parseHost(text: string): DatabaseHost {
  if (text.startsWith('/')) return { kind: 'unix', socket: `${text}/.s.PGSQL.${DEFAULT_PORT}` };
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3] ?? DEFAULT_PORT);
  if (match === null || port < 1 || port > 65_535) {
    throw new UsageError('each host must be HOST, HOST:PORT, [IPV6]:PORT or the directory of a Unix socket');
  }
  return { kind: 'tcp', host: match[1] ?? match[2] ?? '', port };
}

function isSslMode(text: string): text is SslMode {
  return SSL_MODES.some((mode) => mode === text);
}

function readRoots(file: string | undefined): string | null {
  if (file === undefined || file === 'system') return null;
  try {
    return readFileSync(file, 'latin1');
  } catch {
    throw new UsageError('sslrootcert must be a file of certificates in PEM that can be read');
  }
}

/** The mode for this host. Without a configured mode, only loopback and Unix sockets are trusted. */
export function sslModeFor({ sslMode }: PostgresAddress, host: DatabaseHost): SslMode {
  if (host.kind === 'unix') return 'disable';
  return sslMode ?? (isLoopbackHost(host.host) ? 'disable' : 'verify-full');
}

/** Hosts and database for messages, without user and password. */
export function describeAddress({ hosts, database }: PostgresAddress): string {
  return `PostgreSQL at ${hosts.map(describeHost).join(', ')}, database ${database}`;
}

export const describeHost = (host: DatabaseHost): string =>
  host.kind === 'unix' ? host.socket : `${host.host}:${host.port}`;
