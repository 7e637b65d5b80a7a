/**
 * Values of flags, checked before the server creates anything: hosts, URLs and networks, receivers of log streams and
 * of the webhook for approvals, an OpenID Connect provider, and the database. Messages never repeat the URL of a
 * receiver or of the database, because it may contain a password.
 */

import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { type IpNetwork, isLoopbackHost, parseIpNetwork } from '../core/ip-network.ts';
import type { Environment } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { readSecretBytes } from '../platform/private-files.ts';
import { DEFAULT_APPLICATION_NAME, type PostgresAddress, parseAddress } from '../store/postgres/database-url.ts';
import { isIssuer } from '../vault/operators/operator.ts';

const MAX_NAME_LENGTH = 253;
/** SOURCE: RFC 1123, section 2.1. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns the name in lower case. @throws UsageError */
export function parsePublicName(text: string, field: string): string {
  const name = text.toLowerCase();
  if (name.length <= MAX_NAME_LENGTH && name.split('.').every((label) => LABEL.test(label))) return name;
  throw new UsageError(
    `${field} must be host names such as vault.example, separated by commas: no scheme, no port, no wildcard.`,
  );
}

/** An IP address, or a network such as 10.0.0.0/8. @throws UsageError */
export function parseTrustedProxy(text: string, field: string): string {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const isPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  // A zone names an interface of this machine, which X-Forwarded-For cannot contain.
  if (version === 0 || address.includes('%') || !isPrefix || more.length > 0) {
    throw new UsageError(`${field} must be addresses or networks such as 10.0.0.0/8, separated by commas.`);
  }
  if (bits !== undefined && Number(bits) === 0) {
    throw new UsageError(`${field} must not be every address (/0): each caller could then choose its own.`);
  }
  return text;
}

/** Networks separated by commas; an empty list for `none`. @throws UsageError */
export function parseTargetNetworks(text: string, field: string): readonly IpNetwork[] {
  if (text === 'none') return [];
  return text.split(',').map((item) => {
    const network = parseIpNetwork(item.trim());
    if (network !== null) return network;
    throw new UsageError(`${field} must be networks such as 10.0.0.0/8 or fd00::/8, separated by commas, or none.`);
  });
}

export type Listen =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

export function parseListen(text: string, field: string): Listen {
  if (text.startsWith('unix:')) return { kind: 'unix', path: text.slice('unix:'.length) };
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new UsageError(`${field} must be HOST:PORT, [IPV6]:PORT or unix:PATH.`);
  return { kind: 'tcp', host: match[1] ?? match[2] ?? '', port };
}

export function isLoopback(listen: Listen): boolean {
  return listen.kind === 'unix' || isLoopbackHost(listen.host);
}

/** Whether others cannot read the requests to a URL: it is HTTPS, or HTTP on this machine. */
export function isPrivateUrl({ protocol, hostname }: Pick<URL, 'protocol' | 'hostname'>): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** A private URL without a path. @throws UsageError */
export function parseOwnUrl(text: string, field: string): string {
  const url = URL.parse(text);
  if (url !== null && isPrivateUrl(url) && url.pathname === '/' && url.search === '' && url.username === '')
    return url.origin;
  throw new UsageError(`${field} must be https://HOST or https://HOST:PORT; http:// only for this machine.`);
}

/** The path of a secrets engine of Vault. @throws UsageError */
export function parseMount(text: string, field: string): string {
  if (/^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/.test(text) && !text.includes('..')) return text;
  throw new UsageError(`${field} must be a path such as transit.`);
}

export interface StreamOption {
  /** The label in metrics, and the name of the saved position. Another receiver under the same name continues there. */
  readonly name: string;
  readonly sink: { readonly kind: 'file'; readonly path: string } | { readonly kind: 'webhook'; readonly url: URL };
}

/** Files that all streams share; null without one. */
export interface StreamFiles {
  readonly secretFile: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
}

export interface ApprovalWebhookOption {
  readonly url: URL;
  readonly secretFile: string;
}

const NAMED = /^([a-z][a-z0-9-]{0,31})=(.+)$/;
const STREAM_FORMS = 'file:/PATH or webhook+https://…';

/** Each of `items` is `[NAME=]URL`. @throws UsageError */
export function parseStreams(items: readonly string[], { secretFile }: StreamFiles): StreamOption[] {
  const streams = items.map((item): StreamOption => {
    const [, name, text] = NAMED.exec(item) ?? [null, null, item];
    const sink = parseSink(text ?? '');
    return { name: name ?? sink.kind, sink };
  });
  const names = streams.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined)
    throw new UsageError(`--log-stream has two streams named ${repeated}. Name them, as in archive=file:/PATH.`);
  if (secretFile === null && streams.some(({ sink }) => sink.kind === 'webhook'))
    throw new UsageError('--log-stream with a webhook needs --log-stream-secret-file.');
  return streams;
}

function parseSink(text: string): StreamOption['sink'] {
  const [, scheme, rest = ''] = /^([a-z+]+):(.*)$/.exec(text) ?? [];
  switch (scheme) {
    case 'file':
      if (!rest.startsWith('/')) throw new UsageError('--log-stream: file: needs an absolute path.');
      return { kind: 'file', path: rest.replace(/^\/\/(?=\/)/, '') };
    case 'webhook+https':
    case 'webhook+http':
      return {
        kind: 'webhook',
        url: parseHttpUrl('--log-stream', text.slice('webhook+'.length), STREAM_FORMS, '--log-stream-token-file'),
      };
    default:
      throw new UsageError(`--log-stream must be ${STREAM_FORMS}; several are separated by commas.`);
  }
}

/** Null without a webhook. @throws UsageError */
export function parseApprovalWebhook(text: string | null, secretFile: string | null): ApprovalWebhookOption | null {
  if (text === null && secretFile === null) return null;
  if (text === null || secretFile === null)
    throw new UsageError('--approval-webhook and --approval-webhook-secret-file go together.');
  return { url: parseHttpUrl('--approval-webhook', text, 'https://HOST/PATH'), secretFile };
}

/** `credentialsFlag`: the flag that takes the credentials of the receiver. */
function parseHttpUrl(flag: string, text: string, forms: string, credentialsFlag: string | null = null): URL {
  const url = URL.parse(text);
  if (url === null) throw new UsageError(`${flag} must be ${forms}.`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      `${flag}: the URL must not contain credentials${credentialsFlag === null ? '' : `; give them in ${credentialsFlag}`}.`,
    );
  if (isPrivateUrl(url)) return url;
  throw new UsageError(`${flag}: use https; http is for receivers on this machine only.`);
}

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly secretFile: string | null;
  /** The provider's host, which the console shows. */
  readonly label: string;
}

const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

/** Null without a provider. @throws UsageError */
export function parseOidc(
  issuer: string | null,
  clientId: string | null,
  secretFile: string | null,
): OidcSettings | null {
  if (issuer === null) {
    if (clientId === null && secretFile === null) return null;
    throw new UsageError('--oidc-client-id and --oidc-client-secret-file need --oidc-issuer.');
  }
  const url = URL.parse(issuer);
  const isPlainUrl = url !== null && url.search === '' && url.hash === '' && url.username === '';
  // WHY `isIssuer` too: `URL` ignores line breaks and accepts any length, and the rows of operators contain the issuer.
  if (!isPlainUrl || !isPrivateUrl(url) || !isIssuer(issuer))
    throw new UsageError('--oidc-issuer must be https://HOST or https://HOST/PATH; http:// only for this machine.');
  if (clientId === null || !CLIENT_ID.test(clientId))
    throw new UsageError('--oidc-issuer needs --oidc-client-id, 1 to 255 visible ASCII characters.');
  return { issuer, clientId, secretFile, label: url.host };
}

export const PASSWORD_ON_COMMAND_LINE =
  'Every user of this machine can read the database password on the command line. Use --database-file.';

const VARIABLE = 'LEASEHOLD_DATABASE_URL';

export interface DatabaseChoice {
  readonly address: PostgresAddress;
  /** Whether the password is on the command line, which every user of the machine can read. */
  readonly showsPassword: boolean;
  readonly file: string | null;
}

/**
 * The flag takes precedence over the file, and the file over LEASEHOLD_DATABASE_URL. Null if none is given. @throws
 * UsageError
 */
export function chooseDatabase(
  flag: string | null,
  file: string | null,
  environment: Environment,
): DatabaseChoice | null {
  if (flag !== null && file !== null) throw new UsageError('Give --database or --database-file, not both.');
  if (flag !== null) {
    const address = parseUrl(flag, '--database');
    return { address, showsPassword: address.password !== null, file: null };
  }
  if (file !== null) return { address: parseUrl(readUrl(file), file), showsPassword: false, file };
  const url = environment[VARIABLE];
  return url === undefined ? null : { address: parseUrl(url, VARIABLE), showsPassword: false, file: null };
}

function readUrl(file: string): string {
  try {
    return readSecretBytes(file).toString('utf8').trim();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : `${file} cannot be read.`);
  }
}

function parseUrl(url: string, where: string): PostgresAddress {
  try {
    return parseAddress(url);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${where}: ${error.message}.`);
    throw error;
  }
}

/** The database, with the connection name by which other nodes recognise this one, unless its URL sets another name. */
export function withConnectionName(database: DatabaseChoice | null, name: string): DatabaseChoice | null {
  if (database === null || database.address.applicationName !== DEFAULT_APPLICATION_NAME) return database;
  return { ...database, address: { ...database.address, applicationName: name } };
}

/** The absolute path of a file in a flag. npm changes the working directory. */
export function filePath(path: string | null, environment: Environment): string | null {
  return path === null ? null : resolve(environment['INIT_CWD'] ?? process.cwd(), path);
}
