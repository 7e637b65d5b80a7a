/** The output at startup: address, data directory, token, and the next commands. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ownCommand, quoteForShell, quoteWord } from '../platform/installation.ts';
import { describeAddress } from '../store/postgres/database-url.ts';
import { RECOVERY_MODE } from '../vault/ports.ts';
import type { RunningServer } from './composition.ts';
import type { Configuration } from './configuration.ts';
import { isLoopback } from './flag-values.ts';

/** The first line, and the commands that an operator needs next. */
interface State {
  readonly line: string;
  readonly steps: readonly (readonly [command: string, help: string])[];
}

const READY: State = {
  line: 'Leasehold is ready.',
  steps: [
    ['put openai/key --service openai', 'Store a key that agents can use without seeing it'],
    ['agent add coder', 'Register an agent, and print how it uses the key'],
  ],
};

/** The states in which the server starts without serving everything. */
const LIMITED: Readonly<Record<string, State>> = {
  rolled_back: {
    line: `Leasehold is in recovery mode: ${RECOVERY_MODE}.`,
    steps: [
      ['audit verify', 'Verify the audit log'],
      ['audit export', 'Print it'],
      ['audit accept-rollback', 'Accept the loss'],
    ],
  },
  locked: {
    line: 'Leasehold is locked: it serves health checks and unlocking.',
    steps: [['unlock', 'Open the vault with a manual key slot']],
  },
};

/** The lines of the banner. A token that the operator supplied is never printed. */
export function startupBanner(
  server: Pick<RunningServer, 'address' | 'adminToken' | 'warnings' | 'status'>,
  configuration: Configuration,
): string {
  const { dataDir, database, adminTokenFile, printsToken } = configuration;
  const { address, adminToken, warnings } = server;
  const { line, steps } = LIMITED[server.status()] ?? READY;
  const { writtenTo } = adminToken;
  const token =
    writtenTo !== null && printsToken
      ? `${adminToken.token.reveal()}\n                  (new at each start; also in daemon.token there)`
      : `in ${writtenTo ?? adminTokenFile}`;
  const variables = [
    ...(dataDir === join(homedir(), '.leasehold') ? [] : [`export LEASEHOLD_DATA_DIR=${quoteForShell(dataDir)}`]),
    ...(adminToken.writtenTo === null ? [`export LEASEHOLD_TOKEN_FILE=${quoteForShell(adminTokenFile ?? '')}`] : []),
  ];
  const command = quoteWord(ownCommand(process.env));
  return [
    ...warnings.map((warning) => `WARNING  ${warning}`),
    line,
    '',
    `  address         ${address}`,
    ...consoleAddress(address, configuration).map((url) => `  console         ${url}`),
    `  data directory  ${dataDir}`,
    ...(database === null ? [] : [`  vault           ${describeAddress(database.address)}`]),
    `  admin token     ${token}`,
    '',
    'Next, in another terminal (--help lists all commands):',
    ...variables.map((variable) => `  ${variable}`),
    ...steps.flatMap(([words, help]) => [`  ${help}:`, `    ${command} ${words}`]),
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
