/** The output at start: address, data directory, token, and the first commands to try. */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { quoteForShell } from '../platform/shell-quoting.ts';
import { describeAddress } from '../store/postgres/address.ts';
import type { Service } from './composition.ts';
import type { Configuration } from './configuration.ts';

/** npx finds the command of a checkout; the shell finds an installed one. */
const COMMAND = import.meta.filename.endsWith('.ts') ? 'npx --no-install leasehold' : 'leasehold';

/** Without a terminal the output may go to a log file or journal, so it omits the token. */
export function startupBanner(
  service: Service,
  { dataDir, database, adminTokenFile }: Configuration,
  isTerminal: boolean,
): string {
  const { address, adminToken, warnings } = service;
  const { writtenTo } = adminToken;
  const token =
    writtenTo !== null && isTerminal
      ? `${adminToken.token.reveal()}  (also in daemon.token there)`
      : `in ${writtenTo ?? adminTokenFile}`;
  const variables = [
    ...(dataDir === join(homedir(), '.leasehold') ? [] : [`export LEASEHOLD_DATA_DIR=${quoteForShell(dataDir)}`]),
    ...(adminToken.writtenTo === null ? [`export LEASEHOLD_TOKEN_FILE=${quoteForShell(adminTokenFile ?? '')}`] : []),
  ];
  return [
    ...warnings.map((line) => `WARNING  ${line}`),
    'Leasehold is ready.',
    '',
    `  address         ${address}`,
    `  data directory  ${dataDir}`,
    ...(database === null ? [] : [`  vault           ${describeAddress(database.address)}`]),
    `  admin token     ${token}`,
    '',
    'Try, in another terminal:',
    '',
    ...variables.map((line) => `  ${line}`),
    `  ${COMMAND} put demo/api-key     asks for a value and stores it`,
    `  ${COMMAND} list                 lists the credentials, without values`,
    `  ${COMMAND} --help               shows all commands`,
    '',
    'The README continues from here. Ctrl-C stops the service.',
    '',
  ].join('\n');
}
