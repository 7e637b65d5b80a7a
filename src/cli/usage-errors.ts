/**
 * The errors of a command line, in place of commander's: those contain arguments and values of flags, which may be
 * secrets.
 */
import type { CommanderError } from 'commander';
import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Command } from './command.ts';
import { valueInArguments } from './errors.ts';
import { flagsOf } from './flags.ts';

/** Our names with those that other tools use, in order of preference. */
const ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  ['add', ['create', 'new', 'register']],
  ['put', ['add', 'create', 'new', 'set', 'write', 'store', 'update', 'edit']],
  ['show', ['get', 'read', 'view', 'describe']],
  ['get', ['show', 'read', 'view', 'describe']],
  ['list', ['ls', 'kv', 'secret', 'secrets', 'credential', 'credentials', 'log', 'logs']],
  ['audit', ['log', 'logs']],
  ['delete', ['rm', 'del', 'remove', 'unset', 'destroy', 'deregister']],
  ['revoke', ['end']],
  ['history', ['versions']],
  ['tail', ['follow']],
  ['run', ['exec']],
  ['use', ['curl', 'request', 'fetch', 'call', 'http']],
  ['server', ['start', 'serve']],
  ['login', ['signin', 'auth']],
  ['logout', ['signout']],
  ['whoami', ['me']],
  ['agent', ['user']],
  ['policy', ['policies']],
]);

/** `noun` is empty for the first word of a command's name. */
export function unknownCommand(noun: string, word: string, known: readonly string[]): UsageError {
  const [alias] = [...ALIASES].find(([name, aliases]) => known.includes(name) && aliases.includes(word)) ?? [];
  const near = alias ?? nearest(word, known);
  return new UsageError(
    `unknown ${noun === '' ? '' : `${noun} `}command${near === null ? '' : `; did you mean \`${near}\`?`}`,
    noun === '' ? 'To list all commands: leasehold --help' : `Usage: leasehold ${noun} ${known.join('|')}`,
  );
}

/** `command` is null when the error precedes the command's name. */
export function toUsageError(command: Command | null, { code, message }: CommanderError): UsageError {
  const [, quoted = ''] = /'([^']*)'/.exec(message) ?? [];
  const [flag = ''] = /--?[a-z][\w-]*/i.exec(quoted) ?? [];
  switch (code) {
    case 'commander.unknownOption':
      return unknownFlag(command, flag);
    case 'commander.optionMissingArgument':
      return usageError(command, `${/--[\w-]+/.exec(quoted)?.[0] ?? flag} needs a value`);
    case 'commander.missingArgument':
      return missingArgument(command, quoted);
    case 'commander.excessArguments':
      return tooManyArguments(command, message);
    default:
      return usageError(command, 'invalid flag or argument');
  }
}

/** Flags by which other programs take a value, although they resemble flags of ours. */
const FOREIGN_VALUE_FLAGS: ReadonlySet<string> = new Set(['--file', '--text']);

function unknownFlag(command: Command | null, flag: string): UsageError {
  const known = Object.entries(command === null ? {} : flagsOf(command));
  const name = flag.replace(/^-+/, '');
  if (known.some(([each, { value }]) => each === name && value === null))
    return usageError(command, `${flag} takes no value`);
  const near = nearest(
    name,
    known.map(([each]) => each),
  );
  // Either --value, as in other programs, or a value that starts with -.
  if (command?.takesValue === true && (near === null || FOREIGN_VALUE_FLAGS.has(flag)))
    return valueInArguments('unknown flag; ');
  return usageError(command, near === null ? `unknown flag ${flag}` : `unknown flag ${flag}; did you mean --${near}?`);
}

function tooManyArguments(command: Command | null, message: string): UsageError {
  if (command?.takesValue === true) return valueInArguments();
  const wanted = (command?.arguments ?? []).map(({ name }) => name).join(' ') || 'no arguments';
  const [, expected = '', got = ''] = /Expected (\d+) arguments? but got (\d+):/.exec(message) ?? [];
  return usageError(command, `${command?.name} takes ${wanted}; ${Number(got) - Number(expected)} too many were given`);
}

/**
 * Checks what commander allows: a flag that precedes the command's name and is not the command's, a flag that is
 * repeated, and a flag whose value is empty or looks like another flag. @throws UsageError
 */
export function assertFlags(
  command: Command,
  given: ReadonlyMap<string, readonly string[]>,
  words: readonly string[],
): void {
  const known = flagsOf(command);
  for (const [name, values] of given) {
    const flag = Object.hasOwn(known, name) && command.takesAllWords !== true ? known[name] : undefined;
    if (flag === undefined) throw unknownFlag(command, `--${name}`);
    if (flag.value === null) continue;
    if (values.length > 1 && flag.isRepeatable !== true) throw usageError(command, `--${name} can be given only once`);
    const mayBeEmpty = flag.value === 'TEXT' || flag.value.startsWith('[');
    if (values.includes('') && !mayBeEmpty) throw usageError(command, `--${name} needs a value`);
    if (values.some((value) => /^-./.test(value) && words.includes(value)))
      throw usageError(command, `--${name} needs a value; write --${name}=VALUE if it starts with -`);
  }
}

/** Checks what commander allows: an empty argument, and a program without `--`. @throws UsageError */
export function assertArguments(command: Command, operands: readonly string[]): void {
  const wanted = command.arguments ?? [];
  const empty = wanted.find(({ count }, at) => count !== 'many' && operands[at] === '');
  if (empty !== undefined) throw missingArgument(command, empty.name);
  if (command.rest !== undefined && operands.length > wanted.length)
    throw usageError(command, `Put the command after --: leasehold ${command.name} -e NAME=PATH -- COMMAND`);
}

function missingArgument(command: Command | null, name: string): UsageError {
  const help = command?.arguments?.find((argument) => argument.name === name)?.help ?? '';
  return usageError(command, `${name} is missing: ${help}`);
}

function usageError(command: Command | null, message: string): UsageError {
  return new UsageError(message, `leasehold ${command === null ? '' : `${command.name} `}--help`);
}
