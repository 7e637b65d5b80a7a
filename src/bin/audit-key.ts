/** `npm run audit-key -- --data-dir DIR`: prints the key with which an auditor verifies the audit log. */

import { CALLED_AS } from '../server/command-lines.ts';
import { readConfiguration } from '../server/configuration.ts';
import { exitWithError } from '../server/operator-errors.ts';
import { readAuditKey } from '../server/root-key.ts';

const HELP = `Prints the audit key of a vault. With it an auditor verifies the audit log; it decrypts no value.

Usage: ${CALLED_AS.auditKey} [--data-dir DIR] [--root-key-file FILE] > audit.key
`;

// The reader may close the pipe early.
process.stdout.on('error', () => undefined);
try {
  const configuration = readConfiguration(process.argv.slice(2), process.env);
  process.stdout.write(configuration === null ? HELP : `${readAuditKey(configuration)}\n`);
} catch (error) {
  exitWithError(error);
}
