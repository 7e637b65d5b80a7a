/** `npm run audit-key -- --data-dir DIR`: prints the keys with which an auditor verifies the audit log. */

import { CALLED_AS } from '../server/command-lines.ts';
import { readConfiguration } from '../server/configuration.ts';
import { exitWithError } from '../server/operator-errors.ts';
import { readAuditKeys } from '../server/read-keys.ts';

const HELP = `Prints the audit keys of a vault. With them an auditor verifies the audit log; they decrypt no value.

Usage: ${CALLED_AS.auditKey} [--data-dir DIR] [--database URL] [--root-key-file FILE] > audit.key
`;

// The reader may close the pipe early.
process.stdout.on('error', () => undefined);
try {
  const configuration = readConfiguration(process.argv.slice(2), process.env);
  process.stdout.write(configuration === null ? HELP : `${await readAuditKeys(configuration)}\n`);
} catch (error) {
  exitWithError(error);
}
