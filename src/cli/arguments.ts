/** Parses a command line by the flags and arguments that the command declares. */

import { parseArgs } from 'node:util';
import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Argument, Command } from './command.ts';
import { valueInArguments } from './errors.ts';
import { CONNECTION_FLAGS, flagsOf, OUTPUT_FLAGS } from './flags.ts';

export interface Typed {
  /** Keyed by argument name. */
  readonly arguments: ReadonlyMap<string, readonly string[]>;
  /** Keyed by flag name; a switch has the value `true`. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly rest: readonly string[];
  readonly wantsHelp: boolean;
}

/** @throws UsageError, which never repeats an argument, because it may be a secret value */
export function parseTyped(command: Command, words: readonly string[]): Typed {
  if (command.takesAllWords === true) return { arguments: new Map(), flags: new Map(), rest: words, wantsHelp: false };
  const end = words.indexOf('--');
  const before = end === -1 ? words : words.slice(0, end);
  const after = end === -1 ? [] : words.slice(end + 1);
  const { flags, positionals } = parseFlags(command, before);
  if (flags.has('help')) return { arguments: new Map(), flags, rest: after, wantsHelp: true };
  // Without a program to run, words after -- are arguments, which may start with -.
  const [rest, more] = command.rest === undefined ? [[], after] : [after, []];
  return { arguments: place(command, [...positionals, ...more]), flags, rest, wantsHelp: false };
}

function parseFlags(command: Command, words: readonly string[]) {
  const known = flagsOf(command);
  const options = Object.fromEntries(
    known.map(({ name, short, value }) => [
      name,
      {
        type: value === null ? ('boolean' as const) : ('string' as const),
        multiple: true as const,
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw toUsageError(command, error, known);
  }
  const flags = new Map(Object.entries(parsed.values).map(([name, given]) => [name, (given as unknown[]).map(String)]));
  for (const { name, isRepeatable, value } of known) {
    const given = flags.get(name) ?? [];
    if (given.length > 1 && isRepeatable !== true && value !== null) {
      throw usageError(command, `--${name} can be given only once`);
    }
    if (given.includes('') && name !== 'description') throw usageError(command, `--${name} needs a value`);
  }
  return { flags, positionals: parsed.positionals };
}

/** Flags by which other programs take a value, although they resemble flags of ours. */
const FOREIGN_VALUE_FLAGS: ReadonlySet<string> = new Set(['--file', '--text']);

/** WHY not Node's message: it can contain the flag's value, which may be a secret. */
function toUsageError(command: Command, error: unknown, known: readonly { readonly name: string }[]): UsageError {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const [, flag] = /'(?:-\w, )?(--?[A-Za-z][\w-]*)/.exec(error instanceof Error ? error.message : '') ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' && flag !== undefined) {
    const near = nearestFlag(flag, known);
    // Either --value, as in other programs, or a value that starts with -.
    if (command.takesValue === true && (near === null || FOREIGN_VALUE_FLAGS.has(flag)))
      return valueInArguments('unknown flag; ');
    return usageError(
      command,
      near === null ? `unknown flag ${flag}` : `unknown flag ${flag}; did you mean --${near}?`,
    );
  }
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' && flag !== undefined) {
    const isSwitch = error instanceof Error && error.message.includes('does not take an argument');
    return usageError(
      command,
      isSwitch ? `${flag} takes no value` : `${flag} needs a value; write ${flag}=VALUE if it starts with -`,
    );
  }
  return usageError(command, 'invalid flag or argument');
}

function nearestFlag(flag: string, known: readonly { readonly name: string }[]): string | null {
  return nearest(
    flag.replace(/^-+/, ''),
    known.map(({ name }) => name),
  );
}

function place({ name, arguments: wanted = [], rest, takesValue }: Command, positionals: readonly string[]) {
  const placed = new Map<string, readonly string[]>();
  const left = [...positionals];
  for (const argument of wanted) placed.set(argument.name, take(name, argument, left));
  if (left.length > 0 && rest !== undefined) {
    throw new UsageError('Put the command after --: leasehold run -e NAME=PATH -- COMMAND', `leasehold ${name} --help`);
  }
  if (left.length > 0 && takesValue === true) throw valueInArguments();
  if (left.length > 0) {
    const takes = wanted.length === 0 ? 'no arguments' : wanted.map(({ name: each }) => each).join(' ');
    throw new UsageError(`${name} takes ${takes}; ${left.length} too many were given`, `leasehold ${name} --help`);
  }
  return placed;
}

function take(command: string, { name, count, help }: Argument, left: string[]): readonly string[] {
  if (count === 'many') return left.splice(0);
  const [first] = left.splice(0, 1);
  if (first !== undefined && first !== '') return [first];
  if (count === 'optional' && first === undefined) return [];
  throw new UsageError(`${name} is missing: ${help}`, `leasehold ${command} --help`);
}

function usageError({ name }: Command, message: string): UsageError {
  return new UsageError(message, `leasehold ${name} --help`);
}

/** Moves common flags given before the command name, as in `leasehold --agent NAME get PATH`, after it. */
export function putFlagsBehind(words: readonly string[]): readonly string[] {
  const flags: string[] = [];
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] ?? '';
    const flag = [...OUTPUT_FLAGS, ...CONNECTION_FLAGS].find(
      ({ name, short }) =>
        word === `--${name}` || word.startsWith(`--${name}=`) || (short !== undefined && word === `-${short}`),
    );
    if (flag === undefined || word === '-') break;
    flags.push(word);
    if (flag.value !== null && !word.includes('=')) flags.push(words[++at] ?? '');
  }
  if (flags.length === 0) return words;
  const left = words.slice(at);
  // The name may have two words, so the flags go to the end, but before --.
  const end = left.indexOf('--');
  return end === -1 ? [...left, ...flags] : [...left.slice(0, end), ...flags, ...left.slice(end)];
}
