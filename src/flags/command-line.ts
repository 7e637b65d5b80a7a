/**
 * Parses the words of a program with commander, and its environment variables. Errors never repeat an argument or the
 * value of a flag, because it may be a secret. Messages of commander would repeat it.
 */
import { Command as Commander, CommanderError, Option } from 'commander';
import { nearest } from '../core/operator-text.ts';
import { UsageError } from '../platform/errors.ts';
import { CLIENT_FLAGS } from './client-flags.ts';
import type { Environment, Flag, Flags, FlagValues } from './flag.ts';

/** The texts given for each flag, by name; a switch has the text `true`. */
export type GivenFlags = ReadonlyMap<string, readonly string[]>;

export interface Called {
  readonly name: string;
  /** The command line that prints its help, without `--help`. */
  readonly line: string;
  readonly flags: Flags;
  readonly arguments?: readonly { readonly name: string; readonly help: string }[];
  /** Set if an unexpected argument may be a secret. The error states the safe way to give it. */
  readonly valueError?: (before?: string) => UsageError;
}

interface Style {
  readonly columns: number;
  write(text: string): void;
}

export function newCommander(name: string, { columns, write }: Style): Commander {
  return new Commander(name)
    .optionsGroup('Flags:')
    .helpCommand(false)
    .configureOutput({ writeOut: write, outputError: () => undefined, getOutHelpWidth: () => columns })
    .configureHelp({ minWidthToWrap: 20, optionTerm: ({ flags }) => flags.replace(/<(.*)>/, '$1') });
}

export function addFlag(
  commander: Commander,
  name: string,
  flag: Flag,
  onFlag: (name: string, value: string) => void,
): Option {
  const value = flag.value === null || flag.value.startsWith('[') ? flag.value : `<${flag.value}>`;
  const option = new Option(flagText(name, { ...flag, value }), helpOf(flag));
  if (flag.variable !== undefined) option.env(flag.variable);
  if (flag.byDefault !== undefined) option.default(flag.byDefault, flag.byDefault);
  commander
    .addOption(option)
    .on(`option:${name}`, (given?: string) => onFlag(name, given ?? (value === null ? 'true' : '')));
  return option;
}

/** Returns true if the words were parsed, and false if help or the version was printed. @throws UsageError */
export function parseWords(commander: Commander, words: readonly string[]): boolean {
  try {
    commander.parse(words, { from: 'user' });
    return true;
  } catch (error) {
    if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error;
    return false;
  }
}

/** Reads every flag: from the command line, from its environment variable, or its default. @throws UsageError */
export function readFlags<F extends Flags>(flags: F, given: GivenFlags, environment: Environment): FlagValues<F> {
  const values = Object.entries(flags).map(([name, flag]) => {
    const texts = given.get(name) ?? readVariable(name, flag, environment);
    return [name, flag.read(texts, `--${name}`)];
  });
  // The entries are those of `flags`, each with the result of its own `read`.
  return Object.fromEntries(values) as FlagValues<F>;
}

function readVariable(name: string, { variable, value }: Flag, environment: Environment): readonly string[] {
  const text = variable === undefined ? undefined : environment[variable];
  if (text === undefined) return [];
  if (text === '') throw new UsageError(`${variable} is empty: give it a value as for --${name}, or unset it`);
  if (value !== null) return [text];
  if (['1', 'true'].includes(text)) return ['true'];
  if (['0', 'false'].includes(text)) return [];
  throw new UsageError(`--${name} must be 1, 0, true or false in ${variable}`);
}

/** The flag as help shows it: `-o, --output FORMAT`. */
export function flagText(name: string, { short, value }: Flag): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === null ? '' : ` ${value}`}`;
}

function helpOf({ help, isRepeatable }: Flag): string {
  return isRepeatable === true ? `${help}; repeatable` : help;
}

/** Replaces commander's error, which contains the given text. `called` is null before the name of a subcommand. */
export function toUsageError(called: Called | null, { code, message }: CommanderError): UsageError {
  const [, quoted = ''] = /'([^']*)'/.exec(message) ?? [];
  const [flag = ''] = /--?[a-z][\w-]*/i.exec(quoted) ?? [];
  switch (code) {
    case 'commander.unknownOption':
      return unknownFlag(called, flag);
    case 'commander.optionMissingArgument':
      return usageError(called, `${/--[\w-]+/.exec(quoted)?.[0] ?? flag} needs a value`);
    case 'commander.missingArgument':
      return missingArgument(called, quoted);
    case 'commander.excessArguments':
      return tooManyArguments(called, message);
    default:
      return usageError(called, 'invalid flag or argument');
  }
}

/** Flags with which other programs accept a value, although they resemble flags of this program. */
const FOREIGN_VALUE_FLAGS: ReadonlySet<string> = new Set(['--file', '--text']);

function unknownFlag(called: Called | null, flag: string): UsageError {
  const known = Object.entries(called?.flags ?? {});
  const name = flag.replace(/^-+/, '');
  if (known.some(([each, { value }]) => each === name && value === null))
    return usageError(called, `${flag} takes no value`);
  const near = nearest(
    name,
    known.map(([each]) => each),
  );
  // The user gave --value, as in other programs, or a value that starts with -.
  if (called?.valueError !== undefined && (near === null || FOREIGN_VALUE_FLAGS.has(flag)))
    return called.valueError('unknown flag; ');
  // A name with other characters is not repeated, because it may be a value.
  const what = flag === '' ? 'unknown flag' : `unknown flag ${flag}`;
  return usageError(called, near === null ? what : `${what}; did you mean --${near}?`);
}

function tooManyArguments(called: Called | null, message: string): UsageError {
  if (called?.valueError !== undefined) return called.valueError();
  const wanted = (called?.arguments ?? []).map(({ name }) => name).join(' ') || 'no arguments';
  const [, expected = '', got = ''] = /Expected (\d+) arguments? but got (\d+):/.exec(message) ?? [];
  return usageError(called, `${called?.name} takes ${wanted}; ${Number(got) - Number(expected)} too many were given`);
}

/**
 * Checks the cases that commander allows: a flag that precedes the name of a subcommand and is not its own, and a flag
 * whose value is empty or looks like another flag. @throws UsageError
 */
export function assertFlags(called: Called, given: GivenFlags, words: readonly string[]): void {
  for (const [name, values] of given) {
    const flag = Object.hasOwn(called.flags, name) ? called.flags[name] : undefined;
    if (flag === undefined) throw unknownFlag(called, `--${name}`);
    if (flag.value === null) continue;
    const mayBeEmpty = flag.value === 'TEXT' || flag.value.startsWith('[');
    if (values.includes('') && !mayBeEmpty) throw usageError(called, `--${name} needs a value`);
    if (values.some((value) => /^-./.test(value) && words.includes(value)))
      throw usageError(called, `--${name} needs a value; write --${name}=VALUE if it starts with -`);
  }
}

/** @throws UsageError for a flag that is given twice and is not repeatable */
export function assertGivenOnce(called: Called, given: GivenFlags): void {
  for (const [name, values] of given) {
    const { value = null, isRepeatable } = called.flags[name] ?? {};
    if (value !== null && values.length > 1 && isRepeatable !== true)
      throw usageError(called, `--${name} can be given only once`);
  }
}

export function missingArgument(called: Called | null, name: string): UsageError {
  const help = called?.arguments?.find((argument) => argument.name === name)?.help ?? '';
  return usageError(called, `${name} is missing: ${help}`);
}

export function usageError(called: Called | null, message: string): UsageError {
  return new UsageError(message, `${called === null ? 'leasehold' : called.line} --help`);
}

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
