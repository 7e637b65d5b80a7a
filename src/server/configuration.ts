/**
 * The server's configuration: a flag overrides its environment variable, which overrides the default. The flags are
 * declared in flag-table.ts.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  addFlag,
  assertFlags,
  type Called,
  newCommander,
  parseWords,
  readFlags,
  rejectFlagsKeptByNpm,
  rejectUnknownVariables,
  toUsageError,
} from '../flags/command-line.ts';
import { type Environment, type Flag, toggle } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { SERVER_COMMAND, SERVER_FLAGS, type ServerFlags } from './flag-table.ts';
import {
  chooseDatabase,
  isLoopback,
  type Listen,
  parseApprovalWebhook,
  parseOidc,
  parseStreams,
} from './flag-values.ts';

const HELP_COLUMNS = 80;
const HELP = toggle('show this help', { short: 'h' });
const SERVER: Called = { name: 'the server', line: SERVER_COMMAND, flags: { ...SERVER_FLAGS, help: HELP } };
const AFTER_HELP = `
A switch is 1, 0, true or false in the environment. A flag overrides its
variable, and the variable overrides the default.`;

export type Configuration = ReturnType<typeof toConfiguration>;

/** Null if help was printed. @throws UsageError */
export function readConfiguration(
  words: readonly string[],
  environment: Environment,
  write: (text: string) => void = () => undefined,
): Configuration | null {
  const given = new Map<string, string[]>();
  const server = newCommander(SERVER_COMMAND, { columns: HELP_COLUMNS, write })
    .description('Leasehold: a credential vault for AI agents. Agents use credentials through short-lived leases.')
    .usage('[FLAG …]')
    .helpOption('-h, --help', HELP.help)
    .allowExcessArguments(false)
    .addHelpText('after', AFTER_HELP)
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : toUsageError(SERVER, error);
    })
    .action(() => undefined);
  const onFlag = (name: string, text: string): void => void given.set(name, [...(given.get(name) ?? []), text]);
  for (const [name, flag] of Object.entries<Flag>(SERVER_FLAGS)) addFlag(server, name, flag, onFlag);
  if (!parseWords(server, words)) return null;
  assertFlags(SERVER, given, words);
  rejectFlagsKeptByNpm(SERVER_FLAGS, environment, 'npm start');
  rejectUnknownVariables(environment, SERVER_FLAGS);
  return toConfiguration(readFlags(SERVER_FLAGS, given, environment), environment);
}

/**
 * The configuration for a subcommand that opens a vault without its server. Null selects the default. @throws
 * UsageError
 */
export function configurationOf(
  dataDir: string | null,
  rootKeyFile: string | null,
  environment: Environment,
): Configuration {
  rejectUnknownVariables(environment, SERVER_FLAGS);
  const values = readFlags(SERVER_FLAGS, new Map(), environment);
  const given = { 'data-dir': dataDir ?? values['data-dir'], 'root-key-file': rootKeyFile ?? values['root-key-file'] };
  return toConfiguration({ ...values, ...given }, environment);
}

function toConfiguration(values: ServerFlags, environment: Environment) {
  const base = environment['INIT_CWD'] ?? process.cwd();
  const file = (name: FileFlag): string | null => {
    const path = values[name];
    return path === null ? null : resolve(base, path);
  };
  const streamFiles = {
    secretFile: file('log-stream-secret-file'),
    tokenFile: file('log-stream-token-file'),
    caFile: file('log-stream-ca-file'),
  };
  const listen = absolute(values.listen, base);
  const tls = tlsFiles(file('tls-cert'), file('tls-key'));
  assertPrivate(listen, tls !== null || values['insecure-http']);
  return {
    dataDir: file('data-dir') ?? join(homedir(), '.leasehold'),
    database: chooseDatabase(values.database, file('database-file'), environment),
    mayMigrate: !values['no-migrate'],
    listen,
    rootKeyFile: file('root-key-file'),
    transit: {
      address: values['transit-address'],
      tokenFile: file('transit-token-file'),
      caFile: file('transit-ca-file'),
      mount: values['transit-mount'],
    },
    awsKms: { endpoint: values['aws-kms-endpoint'] },
    /** The directory in which systemd places the unit's credentials. */
    credentialsDirectory: environment['CREDENTIALS_DIRECTORY'],
    adminTokenFile: file('admin-token-file'),
    printsToken: values['print-token'] === 'always',
    adminMayRetrieve: values['admin-retrieve'] === 'allow',
    versionsKept: values['versions-kept'],
    /** Recorded denials per agent and minute. Further ones receive 429, and are counted but not recorded. */
    denialsPerMinute: values['denials-per-minute'],
    budgets: {
      sessionsPerHour: values['sessions-per-hour'],
      leasesPerHour: values['leases-per-hour'],
      storedMibPerHour: values['stored-mib-per-hour'],
    },
    tls,
    checkpointFiles: values['checkpoint-file'].map((path) => resolve(base, path)),
    metricsTokenFile: file('metrics-token-file'),
    logStreams: parseStreams(values['log-stream'], streamFiles),
    streamFiles,
    oidc: parseOidc(values['oidc-issuer'], values['oidc-client-id'], file('oidc-client-secret-file')),
    approvalWebhook: parseApprovalWebhook(values['approval-webhook'], file('approval-webhook-secret-file')),
    consoleUrl: values['console-url'],
    publicNames: values['public-name'],
    trustedProxies: values['trusted-proxy'],
    /** The only networks that targets may allow; null for all. */
    targetNetworks: values['target-networks'],
    acceptsOpenModes: values['accept-open-modes'],
    acceptClock: values['accept-clock'],
    acceptRollback: values['accept-rollback'],
    logLevel: values['log-level'],
  };
}

type FileFlag = Exclude<
  Extract<keyof ServerFlags, 'data-dir' | 'tls-cert' | 'tls-key' | `${string}-file`>,
  'checkpoint-file'
>;

function absolute(listen: Listen, base: string): Listen {
  return listen.kind === 'unix' ? { kind: 'unix', path: resolve(base, listen.path) } : listen;
}

function tlsFiles(certFile: string | null, keyFile: string | null) {
  if ((certFile === null) !== (keyFile === null)) throw new UsageError('--tls-cert and --tls-key go together.');
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}

function assertPrivate(listen: Listen, isAllowed: boolean): void {
  if (isLoopback(listen) || isAllowed) return;
  throw new UsageError(
    'Plain HTTP on an address that other machines can reach exposes every value. Give --tls-cert and --tls-key, listen on 127.0.0.1, or add --insecure-http.',
  );
}
