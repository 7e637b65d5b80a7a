/**
 * The service's configuration: a flag overrides the environment, which overrides the default. `--help` lists the same
 * table.
 */

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { DENIALS_PER_MINUTE } from '../ledger/denial-budget.ts';
import { UsageError } from '../platform/errors.ts';
import { DEFAULT_BUDGETS } from '../vault/agent-budgets.ts';
import { CALLED_AS } from './command-lines.ts';
import { chooseDatabase } from './database-option.ts';
import { FLAGS, type FlagName } from './flag-table.ts';
import {
  type Environment,
  filePath,
  parseFlags,
  rejectFlagsKeptByNpm,
  rejectUnknownVariables,
  variableOf,
} from './flags.ts';
import { parsePublicName, parseTargetNetworks, parseTrustedProxy } from './hosts.ts';
import { parseOidc } from './oidc-options.ts';
import { parseApprovalWebhook, parseStreams } from './receiver-options.ts';

export type Listen =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type Configuration = NonNullable<ReturnType<typeof readConfiguration>>;

export function help(): string {
  const rows = FLAGS.map(({ name, value, help: text }) => {
    const flag = value === null ? `--${name}` : `--${name} ${value}`;
    return `  ${flag.padEnd(30)} ${text}`;
  });
  return [
    'Leasehold: a credential vault for AI agents. Credentials are held by lease, never owned.',
    '',
    `Usage: ${CALLED_AS.server} [flags]`,
    '',
    ...rows,
    `  ${'--help'.padEnd(30)} show this help`,
    '',
    'Every flag has an environment variable: LEASEHOLD_DATA_DIR for --data-dir; switches are 1 or 0.',
    'A flag overrides the environment, and the environment overrides the default.',
  ].join('\n');
}

/** Null for `--help`. @throws UsageError */
export function readConfiguration(args: readonly string[], environment: Environment) {
  const given = parseServiceFlags(args);
  if (given.has('help')) return null;
  const names = FLAGS.map(({ name }) => name);
  rejectFlagsKeptByNpm(names, environment, 'npm start');
  rejectUnknownVariables(environment, names);
  const base = environment['INIT_CWD'] ?? process.cwd();
  const get = (name: FlagName): string | undefined => given.get(name) ?? fromEnvironment(environment, name);
  const file = (name: FlagName): string | null => filePath(get(name), environment);
  const amount = (name: FlagName, byDefault: number): number =>
    wholeNumber(name, get(name) ?? String(byDefault), 1, 999_999_999);
  const streamFiles = {
    secretFile: file('log-stream-secret-file'),
    tokenFile: file('log-stream-token-file'),
    caFile: file('log-stream-ca-file'),
  };
  const listen = parseListen(get('listen') ?? '127.0.0.1:7700', base);
  const tls = tlsFiles(file('tls-cert'), file('tls-key'));
  assertPrivate(listen, tls !== null || parseBoolean('insecure-http', get('insecure-http')));
  return {
    dataDir: file('data-dir') ?? join(homedir(), '.leasehold'),
    /** Null for the embedded store. */
    database: chooseDatabase({ flag: given.get('database'), file: file('database-file'), environment }),
    /** Whether a start may bring the schema of a shared database up to date. */
    mayMigrate: !parseBoolean('no-migrate', get('no-migrate')),
    listen,
    rootKeyFile: file('root-key-file'),
    transit: {
      address: parseUrl('transit-address', get('transit-address')),
      tokenFile: file('transit-token-file'),
      caFile: file('transit-ca-file'),
      mount: parseMount(get('transit-mount') ?? 'transit'),
    },
    awsKms: { endpoint: parseUrl('aws-kms-endpoint', get('aws-kms-endpoint')) },
    /** Where systemd puts the credentials of the unit. */
    credentialsDirectory: environment['CREDENTIALS_DIRECTORY'],
    adminTokenFile: file('admin-token-file'),
    printsToken: oneOf('print-token', get('print-token') ?? 'always', ['always', 'never']) === 'always',
    adminMayRetrieve: oneOf('admin-retrieve', get('admin-retrieve') ?? 'allow', ['allow', 'deny']) === 'allow',
    versionsKept: wholeNumber('versions-kept', get('versions-kept') ?? '10', 1, 1000),
    /** Denials of one agent that are recorded individually; further ones are summarised. */
    denialsPerMinute: amount('denials-per-minute', DENIALS_PER_MINUTE),
    budgets: {
      sessionsPerHour: amount('sessions-per-hour', DEFAULT_BUDGETS.sessionsPerHour),
      leasesPerHour: amount('leases-per-hour', DEFAULT_BUDGETS.leasesPerHour),
      storedMibPerHour: amount('stored-mib-per-hour', DEFAULT_BUDGETS.storedMibPerHour),
    },
    tls,
    checkpointFiles: parseList(get('checkpoint-file')).map((path) => resolve(base, path)),
    metricsTokenFile: file('metrics-token-file'),
    logStreams: parseStreams(parseList(get('log-stream')), streamFiles),
    streamFiles,
    oidc: parseOidc(
      {
        issuer: get('oidc-issuer'),
        clientId: get('oidc-client-id'),
        secretFile: file('oidc-client-secret-file'),
        label: get('oidc-label'),
      },
      isLoopbackHost,
    ),
    approvalWebhook: parseApprovalWebhook(get('approval-webhook'), file('approval-webhook-secret-file')),
    consoleUrl: parseUrl('console-url', get('console-url')),
    publicNames: parseList(get('public-name')).map(parsePublicName),
    trustedProxies: parseList(get('trusted-proxy')).map(parseTrustedProxy),
    /** The only networks that targets may allow; null for all. */
    targetNetworks: parseTargetNetworks(get('target-networks')),
    acceptsOpenModes: parseBoolean('accept-open-modes', get('accept-open-modes')),
    acceptClock: parseBoolean('accept-clock', get('accept-clock')),
    acceptRollback: parseBoolean('accept-rollback', get('accept-rollback')),
    logLevel: oneOf('log-level', get('log-level') ?? 'info', LOG_LEVELS),
  };
}

/**
 * What a subcommand that opens a vault without its server needs. Null for the defaults. @throws UsageError
 */
export function configurationOf(
  dataDir: string | null,
  rootKeyFile: string | null,
  environment: Environment,
): Configuration {
  const flags = { 'data-dir': dataDir, 'root-key-file': rootKeyFile };
  const args = Object.entries(flags).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]));
  const configuration = readConfiguration(args, environment);
  if (configuration === null) throw new Error('no flag asks for help');
  return configuration;
}

function fromEnvironment(environment: Environment, name: FlagName): string | undefined {
  const variable = variableOf(name);
  const value = environment[variable];
  if (value === '') throw new UsageError(`${variable} is empty: give it a value as for --${name}, or unset it.`);
  return value;
}

function parseServiceFlags(args: readonly string[]): Map<string, string> {
  const options = Object.fromEntries(
    FLAGS.map(({ name, value }) => [name, { type: value === null ? ('boolean' as const) : ('string' as const) }]),
  );
  const values = parseFlags(args, { ...options, help: { type: 'boolean', short: 'h' } }, CALLED_AS.server);
  return new Map(Object.entries(values).map(([name, value]) => [name, value === true ? '1' : String(value)]));
}

/** HTTPS, or HTTP on this machine, without a path. @throws UsageError */
function parseUrl(name: FlagName, text: string | undefined): string | null {
  if (text === undefined) return null;
  const url = URL.parse(text);
  const isPrivate = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (url !== null && isPrivate && url.pathname === '/' && url.search === '' && url.username === '') return url.origin;
  throw new UsageError(`--${name} must be https://HOST or https://HOST:PORT; http:// only for this machine.`);
}

function parseMount(text: string): string {
  if (/^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/.test(text) && !text.includes('..')) return text;
  throw new UsageError('--transit-mount must be a path such as transit.');
}

function parseBoolean(name: FlagName, text: string | undefined): boolean {
  return oneOf(name, text ?? '0', ['1', '0', 'true', 'false']) === '1' || text === 'true';
}

function oneOf<T extends string>(name: FlagName, text: string, words: readonly T[]): T {
  const word = words.find((known) => known === text);
  if (word === undefined) throw new UsageError(`--${name} must be one of ${words.join(', ')}.`);
  return word;
}

function wholeNumber(name: FlagName, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw new UsageError(`--${name} must be a whole number, ${least} to ${most}.`);
  return value;
}

function parseList(text: string | undefined): string[] {
  return (text ?? '').split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

function parseListen(text: string, base: string): Listen {
  if (text.startsWith('unix:')) return { kind: 'unix', path: resolve(base, text.slice('unix:'.length)) };
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new UsageError('--listen must be HOST:PORT, [IPV6]:PORT or unix:PATH.');
  return { kind: 'tcp', host: match[1] ?? match[2] ?? '', port };
}

function tlsFiles(certFile: string | null, keyFile: string | null) {
  if ((certFile === null) !== (keyFile === null)) throw new UsageError('--tls-cert and --tls-key go together.');
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}

export function isLoopback(listen: Listen): boolean {
  return listen.kind === 'unix' || isLoopbackHost(listen.host);
}

function isLoopbackHost(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function assertPrivate(listen: Listen, isAllowed: boolean): void {
  if (isLoopback(listen) || isAllowed) return;
  throw new UsageError(
    'Plain HTTP on an address that other machines can reach exposes every value. Give --tls-cert and --tls-key, listen on 127.0.0.1, or add --insecure-http.',
  );
}
