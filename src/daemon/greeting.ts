/** What is printed at start: where it is, how to get in, and the next thing to try. */

import { describeAddress } from '../store/postgres/address.ts';
import type { Service } from './composition.ts';
import type { Configuration } from './configuration.ts';

export function greeting(service: Service, { dataDir, database, adminTokenFile }: Configuration): string {
  const { address, adminToken, warnings } = service;
  const token =
    adminToken.writtenTo === null
      ? `the one in ${adminTokenFile}`
      : `${adminToken.token.reveal()}  (also in daemon.token there)`;
  const tokenFile = adminToken.writtenTo ?? adminTokenFile ?? '';
  const curl = address.startsWith('unix:')
    ? `curl --unix-socket ${address.slice('unix:'.length)} http://localhost`
    : `curl ${address}`;
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
    `  TOKEN="$(cat '${tokenFile}')"`,
    `  ${curl}/api/v1/credentials -H "Authorization: Bearer $TOKEN" \\`,
    `    -H 'Content-Type: application/json' -d '{"path":"demo/api-key","value":"s3cret"}'`,
    '',
    "The README's tour goes on from there. Ctrl-C stops.",
    '',
  ].join('\n');
}
