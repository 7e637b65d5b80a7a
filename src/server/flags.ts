/**
 * The command-line flags and environment variables of the service and its tools. A misspelt one is an error, because it
 * would be ignored silently, and so is a flag that npm took.
 */
import { resolve } from 'node:path';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `program`: the command line of the program, for messages. @throws UsageError */
export function parseFlags<T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, program: string) {
  const values = parseStrictly(args, options, program);
  const empty = Object.entries(values).find(([, value]) => value === '');
  if (empty !== undefined) throw new UsageError(`--${empty[0]} needs a value.`);
  return values;
}

function parseStrictly<T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, program: string) {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    // The first sentence names the flag; the rest may repeat values.
    const [first = ''] = (error instanceof Error ? error.message : '').split(/\.?\s*\n|\. /);
    throw new UsageError(`${first}. ${program} --help lists the flags.`);
  }
}

/** The absolute path of a file in a flag. npm changes the working directory. */
export function filePath(path: string | undefined, environment: Environment): string | null {
  return path === undefined ? null : resolve(environment['INIT_CWD'] ?? process.cwd(), path);
}

/** Without `--` npm takes a flag as its own option, and the program would use the default. @throws UsageError */
export function rejectFlagsKeptByNpm(names: readonly string[], environment: Environment, script: string): void {
  const kept = names.find((name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined);
  if (kept === undefined) return;
  throw new UsageError(`npm kept --${kept} for itself: put -- before the flags, as in ${script} -- --${kept} …`);
}

const PREFIX = 'LEASEHOLD_';

/** Variables without a flag of the service: an alternative name, those of the command, and internal ones. */
const OTHERS = [
  ...['ADDR', 'AGENT', 'AUDIT_KEY', 'CA_FILE', 'DATABASE_URL', 'KEY_FILE', 'OPERATOR', 'OUTPUT', 'PROFILE', 'SIGIGN'],
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
export function rejectUnknownVariables(environment: Environment, flags: readonly string[]): void {
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
