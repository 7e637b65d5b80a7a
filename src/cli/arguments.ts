/** What was typed, held against what a command takes. */

import { parseArgs } from 'node:util';
import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Argument, Command } from './command.ts';
import { valueInArguments } from './errors.ts';
import { CONNECTION_FLAGS, flagsOf, OUTPUT_FLAGS } from './flags.ts';

export interface Typed {
  /** By the argument's name. */
  readonly arguments: ReadonlyMap<string, readonly string[]>;
  /** By the flag's name; a switch is `true`. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly rest: readonly string[];
  readonly wantsHelp: boolean;
}

/** @throws UsageError; what was typed is not repeated, because it may be a value */
export function parseTyped(command: Command, words: readonly string[]): Typed {
  if (command.takesAllWords === true) return { arguments: new Map(), flags: new Map(), rest: words, wantsHelp: false };
  const end = words.indexOf('--');
  const before = end === -1 ? words : words.slice(0, end);
  const behind = end === -1 ? [] : words.slice(end + 1);
  const { flags, positionals } = parseFlags(command, before);
  if (flags.has('help')) return { arguments: new Map(), flags, rest: behind, wantsHelp: true };
  // For a command that runs none, what stands there are arguments that may begin with -.
  const [rest, more] = command.rest === undefined ? [[], behind] : [behind, []];
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
    throw mistakeOf(command, error, known);
  }
  const flags = new Map(Object.entries(parsed.values).map(([name, given]) => [name, (given as unknown[]).map(String)]));
  for (const { name, isRepeatable, value } of known) {
    const given = flags.get(name) ?? [];
    if (given.length > 1 && isRepeatable !== true && value !== null) {
      throw mistaken(command, `--${name} may be given once`);
    }
    if (given.includes('') && name !== 'description') throw mistaken(command, `--${name} needs a value`);
  }
  return { flags, positionals: parsed.positionals };
}

/** Near to flags that are here, and yet meant for a value. */
const VALUE_FLAGS_ELSEWHERE: ReadonlySet<string> = new Set(['--file', '--text']);

/** Node names the flag, which we may repeat, and sometimes what stands behind it, which we may not. */
function mistakeOf(command: Command, error: unknown, known: readonly { readonly name: string }[]): UsageError {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const [, flag] = /'(?:-\w, )?(--?[A-Za-z][\w-]*)/.exec(error instanceof Error ? error.message : '') ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' && flag !== undefined) {
    const near = nearestFlag(flag, known);
    // As --value, which other programs have; or a value that begins with -.
    if (command.takesValue === true && (near === null || VALUE_FLAGS_ELSEWHERE.has(flag)))
      return valueInArguments('there is no such flag, and ');
    return mistaken(
      command,
      near === null ? `there is no flag ${flag}` : `there is no flag ${flag}; did you mean --${near}?`,
    );
  }
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' && flag !== undefined) {
    const isSwitch = error instanceof Error && error.message.includes('does not take an argument');
    return mistaken(
      command,
      isSwitch ? `${flag} takes no value` : `${flag} needs a value; one that begins with - is written ${flag}=VALUE`,
    );
  }
  return mistaken(command, 'that is no flag and no argument');
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
    const takes = wanted.length === 0 ? 'no argument' : wanted.map(({ name: each }) => each).join(' ');
    throw new UsageError(`${name} takes ${takes}, and ${left.length} more were given`, `leasehold ${name} --help`);
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

function mistaken({ name }: Command, message: string): UsageError {
  return new UsageError(message, `leasehold ${name} --help`);
}

/** Flags that every command has may stand before its name, as in `leasehold --agent NAME get PATH`: they are put behind it. */
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
  // Of two words, a noun and a verb, or of one: flags go before whatever stands behind --.
  const end = left.indexOf('--');
  return end === -1 ? [...left, ...flags] : [...left.slice(0, end), ...flags, ...left.slice(end)];
}
