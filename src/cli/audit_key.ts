/** `npm run audit-key -- --data-dir DIR`: prints the key with which the audit log can be verified, and nothing else opened. */
import { readAuditKey } from '../daemon/auditkey.ts';
import { readConfiguration } from '../daemon/configuration.ts';
import { StartError } from '../daemon/files.ts';
import { CALLED_AS, UsageError } from '../daemon/usage.ts';

const HELP = `Prints the audit key of a vault, for an auditor: it verifies the audit log and opens no value.

Usage: ${CALLED_AS.auditKey} [--data-dir DIR] [--root-key-file FILE] > audit.key
`;

// Whoever reads may have seen enough.
process.stdout.on('error', () => undefined);
try {
  const configuration = readConfiguration(process.argv.slice(2), process.env);
  process.stdout.write(configuration === null ? HELP : `${readAuditKey(configuration)}\n`);
} catch (error) {
  if (!(error instanceof UsageError || error instanceof StartError)) throw error;
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
