/** The environment variables of Leasehold. A misspelt one is an error, because it would be ignored silently. */

import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';

const PREFIX = 'LEASEHOLD_';

/** Variables without a flag of the service: an alternative name, those of the command, and internal ones. */
const OTHERS = [
  ...['ADDR', 'AGENT', 'AUDIT_KEY', 'CA_FILE', 'DATABASE_URL', 'KEY_FILE', 'MCP_TOKEN', 'OUTPUT', 'PROFILE', 'SIGIGN'],
  ...['TIMEOUT', 'TOKEN', 'TOKEN_FILE'],
];

/** SOURCE: Kubernetes sets these in every pod for a Service named `leasehold`. */
const OF_KUBERNETES = /^(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const ADDRESS_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;
/** The variables of the project's tests. */
const OF_TESTS = /^TEST_/;

export function variableOf(flag: string): string {
  return PREFIX + flag.toUpperCase().replaceAll('-', '_');
}

/** @throws UsageError that names the variable and never its value */
export function rejectUnknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  flags: readonly string[],
): void {
  const known = [...flags.map(variableOf), ...OTHERS.map((name) => PREFIX + name)];
  for (const [variable, value = ''] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || known.includes(variable)) continue;
    const name = variable.slice(PREFIX.length);
    if (OF_KUBERNETES.test(name) || OF_TESTS.test(name)) continue;
    if (name === 'PORT' && ADDRESS_OF_KUBERNETES.test(value)) continue;
    const near = nearest(variable, known);
    throw new UsageError(`${variable} is not a setting. ${near === null ? 'Unset it.' : `Did you mean ${near}?`}`);
  }
}
