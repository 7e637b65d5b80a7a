/** The output at startup: address, data directory, token, and the next commands. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ownCommand, quoteForShell, quoteWord } from '../platform/installation.ts';
import { describeAddress } from '../store/postgres/database-url.ts';
import type { RunningServer } from './composition.ts';
import type { Configuration } from './configuration.ts';
import { isLoopback } from './flag-values.ts';

const STEPS = [
  ['put openai/key --service openai', 'stores a key that agents can use without seeing it'],
  ['agent add coder', 'registers an agent, and prints how it uses the key'],
  ['--help', 'lists all commands'],
] as const;

const STEPS_AFTER_A_LOSS = [
  ['audit verify', 'verifies the audit log'],
  ['audit export', 'prints it'],
  ['audit accept-rollback', 'accepts the loss'],
] as const;

const STEPS_WHILE_LOCKED = [['unlock', 'opens the vault with a manual key slot']] as const;

/** The states in which the server starts, besides that in which it serves everything. */
const STATES: Readonly<Record<string, string>> = {
  rolled_back:
    'Leasehold is in recovery mode: it serves health checks, and reading, verifying and exporting the audit log.',
  locked: 'Leasehold is locked: it serves health checks and unlocking.',
};

/** The lines of the banner. A token that the operator supplied is never printed. */
export function startupBanner(
  service: Pick<RunningServer, 'address' | 'adminToken' | 'warnings' | 'status'>,
  configuration: Configuration,
): string {
  const { dataDir, database, adminTokenFile, printsToken } = configuration;
  const { address, adminToken, warnings } = service;
  const status = service.status();
  const { writtenTo } = adminToken;
  const token =
    writtenTo !== null && printsToken
      ? `${adminToken.token.reveal()}  (also in daemon.token there)`
      : `in ${writtenTo ?? adminTokenFile}`;
  const variables = [
    ...(dataDir === join(homedir(), '.leasehold') ? [] : [`export LEASEHOLD_DATA_DIR=${quoteForShell(dataDir)}`]),
    ...(adminToken.writtenTo === null ? [`export LEASEHOLD_TOKEN_FILE=${quoteForShell(adminTokenFile ?? '')}`] : []),
  ];
  const steps = status === 'rolled_back' ? STEPS_AFTER_A_LOSS : status === 'locked' ? STEPS_WHILE_LOCKED : STEPS;
  const command = quoteWord(ownCommand(process.env));
  const width = Math.max(...steps.map(([words]) => words.length));
  return [
    ...warnings.map((line) => `WARNING  ${line}`),
    STATES[status] ?? 'Leasehold is ready.',
    '',
    `  address         ${address}`,
    ...consoleAddress(address, configuration).map((url) => `  console         ${url}`),
    `  data directory  ${dataDir}`,
    ...(database === null ? [] : [`  vault           ${describeAddress(database.address)}`]),
    `  admin token     ${token}`,
    '',
    'Next, in another terminal:',
    '',
    ...variables.map((line) => `  ${line}`),
    ...steps.map(([words, help]) => `  ${command} ${words.padEnd(width)}  ${help}`),
    '',
    'Ctrl-C stops the server.',
    '',
  ].join('\n');
}

/**
 * The URL of the console, if a browser can reach it. It contains a name, because passkeys do not work at an IP address.
 */
function consoleAddress(address: string, { listen, publicNames, tls }: Configuration): string[] {
  const url = URL.parse(address);
  if (url === null || listen.kind === 'unix') return [];
  const [publicName] = publicNames;
  const name = isLoopback(listen) ? 'localhost' : tls === null ? null : (publicName ?? null);
  if (name !== null) url.hostname = name;
  return [`${url.origin}/console/`];
}
