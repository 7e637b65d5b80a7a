/** The environment variables of the server and the CLI. A misspelt one is an error, because it would be ignored. */
import { nearest } from '../core/operator-text.ts';
import { UsageError } from '../platform/errors.ts';
import { CLIENT_FLAGS } from './client-flags.ts';
import type { Environment, Flag, Flags } from './flag.ts';

const PREFIX = 'LEASEHOLD_';

export function variableOf(flag: string): string {
  return PREFIX + flag.toUpperCase().replaceAll('-', '_');
}

const OTHERS = ['AUDIT_KEY', 'DATABASE_URL', 'SIGIGN', 'TOKEN'].map((name) => PREFIX + name);

/** Kubernetes sets these variables in every pod for a Service named `leasehold`. */
const OF_KUBERNETES = /^(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const ADDRESS_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;
const OF_TESTS = /^TEST_/;

/** @throws UsageError, which names the variable and never its value */
export function rejectUnknownVariables(environment: Environment, flags: Flags): void {
  const known = [
    ...Object.values<Flag>(CLIENT_FLAGS).flatMap(({ variable }) => variable ?? []),
    ...Object.values(flags).flatMap(({ variable }) => variable ?? []),
    ...OTHERS,
  ];
  for (const [variable, value = ''] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || known.includes(variable)) continue;
    const name = variable.slice(PREFIX.length);
    if (OF_KUBERNETES.test(name) || OF_TESTS.test(name)) continue;
    if (name === 'PORT' && ADDRESS_OF_KUBERNETES.test(value)) continue;
    const near = nearest(variable, known);
    throw new UsageError(`${variable} is not a setting. ${near === null ? 'Unset it.' : `Did you mean ${near}?`}`);
  }
}

/** WHY: npm reads a flag without `--` as its own option, and the program would use the default. @throws UsageError */
export function rejectFlagsKeptByNpm(
  flags: Readonly<Record<string, unknown>>,
  environment: Environment,
  script: string,
): void {
  const kept = Object.keys(flags).find((name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined);
  if (kept === undefined) return;
  throw new UsageError(`npm kept --${kept} for itself: put -- before the flags, as in ${script} -- --${kept} …`);
}
