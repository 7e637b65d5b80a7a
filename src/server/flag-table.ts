/** The flags of the server. The environment variable of each is `LEASEHOLD_` and its name in capitals. */
import type { IpNetwork } from '../core/ip-network.ts';
import { variableOf } from '../flags/command-line.ts';
import { chooseFrom, type Flags, type FlagValues, parsed, text, toggle, withDefault } from '../flags/flag.ts';
import { DEFAULT_BUDGETS, DENIALS_PER_MINUTE } from '../ledger/budgets.ts';
import { UsageError } from '../platform/errors.ts';
import {
  parseListen,
  parseMount,
  parseOwnUrl,
  parsePublicName,
  parseTargetNetworks,
  parseTrustedProxy,
} from './flag-values.ts';

const MAX_AMOUNT = 999_999_999;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

function amount(help: string, byDefault: number, most = MAX_AMOUNT) {
  return withDefault('N', help, String(byDefault), (given, field) => {
    const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= 1 && value <= most) return value;
    throw new UsageError(`${field} must be a whole number, 1 to ${most}`);
  });
}

/** Items separated by commas. A repeated flag adds to them. */
function commaList<T>(value: string, help: string, parse: (item: string, field: string) => T) {
  const read = (given: readonly string[], field: string): readonly T[] =>
    given.flatMap((text) => text.split(',')).flatMap((item) => (item.trim() === '' ? [] : [parse(item.trim(), field)]));
  return { value, help, isRepeatable: true, read } as const;
}

const VAULT = {
  'data-dir': { ...text('DIR', 'the data directory of the vault'), byDefault: '~/.leasehold' },
  database: text('URL', 'postgres://… for several nodes, instead of the database in DIR (also LEASEHOLD_DATABASE_URL)'),
  'database-file': text('FILE', 'a file with that URL, which keeps its password off the command line'),
  'root-key-file': { ...text('FILE', 'the root key, 32 bytes as base64'), byDefault: 'DIR/root.key' },
};

const SERVER = {
  ...VAULT,
  'transit-address': parsed('URL', 'Vault or OpenBao whose Transit engine opens a key slot', parseOwnUrl),
  'transit-token-file': text('FILE', 'the token for Transit'),
  'transit-ca-file': text('FILE', 'certificate authorities of Transit, in PEM'),
  'transit-mount': withDefault('PATH', 'mount path of the Transit engine', 'transit', parseMount),
  'aws-kms-endpoint': parsed('URL', 'endpoint of AWS KMS, instead of the endpoint of the region', parseOwnUrl),
  listen: withDefault(
    'ADDRESS',
    'HOST:PORT, [IPV6]:PORT or unix:PATH; port 0 picks a free port',
    '127.0.0.1:7700',
    parseListen,
  ),
  'no-migrate': toggle('never change the schema; fail if it is not up to date'),
  'admin-token-file': text('FILE', "the administrator's token; without it each startup generates and prints one"),
  'print-token': withDefault(
    'always|never',
    'whether startup prints the token that it generates; never where output is kept in a log',
    'always',
    chooseFrom(['always', 'never']),
  ),
  'admin-retrieve': withDefault(
    'allow|deny',
    'whether the administrator may read values',
    'allow',
    chooseFrom(['allow', 'deny']),
  ),
  'denials-per-minute': amount('recorded denials of one agent; further ones are 429', DENIALS_PER_MINUTE),
  'sessions-per-hour': amount('maximum sessions per agent', DEFAULT_BUDGETS.sessionsPerHour),
  'leases-per-hour': amount('maximum leases per agent', DEFAULT_BUDGETS.leasesPerHour),
  'stored-mib-per-hour': amount(
    'maximum size of the values that one agent stores, in MiB',
    DEFAULT_BUDGETS.storedMibPerHour,
  ),
  'versions-kept': amount('versions kept of each credential, 1 to 1000', 10, 1000),
  'tls-cert': text('FILE', 'certificate chain in PEM, for HTTPS'),
  'tls-key': text('FILE', 'private key of --tls-cert, in PEM'),
  'insecure-http': toggle('allow plain HTTP on an address that other machines can reach'),
  'public-name': commaList(
    'NAME,…',
    'Host names that a loopback listener accepts in addition to localhost',
    parsePublicName,
  ),
  'trusted-proxy': commaList(
    'ADDRESS,…',
    'proxies whose X-Forwarded-For is trusted: addresses or networks',
    parseTrustedProxy,
  ),
  'target-networks': {
    value: 'CIDR,…',
    help: 'the only internal networks that targets may allow, or none; without it any: see docs/use.md',
    isRepeatable: true,
    read: (given: readonly string[], field: string): readonly IpNetwork[] | null =>
      given.length === 0 ? null : parseTargetNetworks(given.join(), field),
  } as const,
  'oidc-issuer': text('URL', 'a provider of OpenID Connect at which operators sign in: see docs/operators.md'),
  'oidc-client-id': text('ID', 'client id of the server at the provider'),
  'oidc-client-secret-file': text('FILE', "the client's secret; without it a public client"),
  'metrics-token-file': text(
    'FILE',
    'a token that GET /metrics needs; without it clients on this machine may read the metrics',
  ),
  'log-stream': commaList('[NAME=]URL,…', 'where to send the audit log: see docs/monitoring.md', (item) => item),
  'log-stream-secret-file': text('FILE', 'secret (whsec_…) that signs the webhooks'),
  'log-stream-token-file': text('FILE', 'the bearer token for webhooks'),
  'log-stream-ca-file': text('FILE', 'authorities in PEM for the receivers of log streams'),
  'accept-open-modes': toggle(
    'start even if other users may read the data directory, because its file system keeps no modes',
  ),
  'accept-clock': toggle('start even if the clock is behind the audit log'),
  'accept-rollback': toggle(
    'serve the vault even if the audit log has lost entries or its rollback marker is missing; startup records it',
  ),
  'checkpoint-file': commaList(
    'FILE,…',
    'also append signed checkpoints of the audit log to these files; startup compares the log with them',
    (item) => item,
  ),
  'approval-webhook': text('URL', 'where to post requests for approval: see docs/approvals.md'),
  'approval-webhook-secret-file': text('FILE', 'secret (whsec_…) that signs the approval webhook'),
  'console-url': parsed(
    'URL',
    'https://HOST under which browsers reach the server, for links; without it the address that it listens on',
    parseOwnUrl,
  ),
  'log-level': withDefault('LEVEL', 'debug, info, warn, error or silent', 'info', chooseFrom(LOG_LEVELS)),
};

export const SERVER_FLAGS = withVariables(SERVER);
export type ServerFlags = FlagValues<typeof SERVER>;
/** The flags by which a subcommand finds a vault without its server. */
export const VAULT_FLAGS = withVariables(VAULT);

function withVariables<F extends Flags>(flags: F): F {
  // WHY not the database: the file of its flag overrides its variable.
  const named = Object.entries(flags).map(([name, flag]) =>
    name === 'database' ? [name, flag] : [name, { ...flag, variable: variableOf(name) }],
  );
  // The same flags, each with its variable.
  return Object.fromEntries(named) as F;
}

/** The server's name in messages: an npm script in a checkout, where this file is TypeScript, otherwise the CLI. */
export const SERVER_COMMAND = import.meta.filename.endsWith('.ts') ? 'npm start --' : 'leasehold server';
