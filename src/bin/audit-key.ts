/** `npm run audit-key -- --data-dir DIR`: prints the key with which the audit log can be verified, and nothing else opened. */

import { StartupError, UsageError } from '../platform/errors.ts';
import { readAuditKey } from '../server/audit-key.ts';
import { readConfiguration } from '../server/configuration.ts';
import { CALLED_AS } from '../server/errors.ts';

const HELP = `Prints the audit key of a vault, for an auditor: it verifies the audit log and opens no value.

Usage: ${CALLED_AS.auditKey} [--data-dir DIR] [--root-key-file FILE] > audit.key
`;

// Whoever reads may have seen enough.
process.stdout.on('error', () => undefined);
try {
  const configuration = readConfiguration(process.argv.slice(2), process.env);
  process.stdout.write(configuration === null ? HELP : `${readAuditKey(configuration)}\n`);
} catch (error) {
  if (!(error instanceof UsageError || error instanceof StartupError)) throw error;
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
