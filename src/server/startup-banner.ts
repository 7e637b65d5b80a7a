/** What is printed at start: where it is, how to get in, and the next thing to try. */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { describeAddress } from '../store/postgres/address.ts';
import type { Service } from './composition.ts';
import type { Configuration } from './configuration.ts';

/** In a checkout npx finds the command; where it is installed, the shell does. */
const COMMAND = import.meta.filename.endsWith('.ts') ? 'npx --no-install leasehold' : 'leasehold';

/** `isTerminal`: elsewhere it goes to log files and journals, which must not hold the token. */
export function greeting(
  service: Service,
  { dataDir, database, adminTokenFile }: Configuration,
  isTerminal: boolean,
): string {
  const { address, adminToken, warnings } = service;
  const { writtenTo } = adminToken;
  const token =
    writtenTo !== null && isTerminal
      ? `${adminToken.token.reveal()}  (also in daemon.token there)`
      : `the one in ${writtenTo ?? adminTokenFile}`;
  const variables = [
    ...(dataDir === join(homedir(), '.leasehold') ? [] : [`export LEASEHOLD_DATA_DIR=${quoted(dataDir)}`]),
    ...(adminToken.writtenTo === null ? [`export LEASEHOLD_TOKEN_FILE=${quoted(adminTokenFile ?? '')}`] : []),
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
    `  ${COMMAND} put demo/api-key     asks for a value, and stores it`,
    `  ${COMMAND} list                 shows what there is, without values`,
    `  ${COMMAND} --help               shows what else can be done`,
    '',
    "The README's tour goes on from there. Ctrl-C stops.",
    '',
  ].join('\n');
}

/** As a shell takes it for one word, whatever its name. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
