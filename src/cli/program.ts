/**
 * Builds the program from the command table with commander: it parses a command line, prints help, and reports usage
 * errors. Errors never repeat an argument or the value of a flag, because it may be a secret.
 */
import { Argument, type Command as Commander } from 'commander';
import { nearest } from '../core/operator-text.ts';
import { CLIENT_FLAGS, CONNECTION_FLAGS } from '../flags/client-flags.ts';
import {
  addFlag,
  assertFlags,
  assertGivenOnce,
  type Called,
  missingArgument,
  newCommander,
  parseWords,
  toUsageError,
  usageError,
} from '../flags/command-line.ts';
import { UsageError } from '../platform/errors.ts';
import { ignore, readIgnored } from '../platform/inherited-signals.ts';
import { readVersion } from '../platform/installation.ts';
import { type Command, type Entry, flagsOf } from './command.ts';
import { GROUPS } from './command-table.ts';
import { EXIT, valueInArguments } from './errors.ts';
import type { Terminal } from './terminal.ts';

const MAX_WIDTH = 100;
const DESCRIPTION = `Leasehold: a credential vault for AI agents. Agents use credentials through short-lived leases.

Run leasehold COMMAND --help for details. On the machine of the server the address and token are found automatically; \
leasehold doctor shows their sources.`;

export interface CommandLine {
  readonly command: Command;
  /** The texts given for each flag, by name; a switch has the text `true`. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly operands: readonly string[];
  readonly rest: readonly string[];
}

type OnFlag = (name: string, value: string) => void;

/**
 * Finds the entry that the words name, loads its command, and parses the words after its name. Null when it printed
 * help or the version. @throws UsageError
 */
async function parseCommandLine(
  typed: readonly string[],
  terminal: Pick<Terminal, 'stdout'>,
): Promise<CommandLine | null> {
  const [first, ...others] = typed;
  const words = first === 'help' ? [...others, '--help'] : first === 'version' ? ['--version'] : typed;
  const given = new Map<string, string[]>();
  const onFlag: OnFlag = (name, value) => void given.set(name, [...(given.get(name) ?? []), value]);
  let called: { readonly entry: Entry; readonly count: number } | null = null;
  parseWords(
    makeProgram(terminal, onFlag, (entry, count) => (called = { entry, count })),
    words,
  );
  const found = called as { readonly entry: Entry; readonly count: number } | null;
  if (found === null) return null;
  // Commander drops a `--` right after the name.
  const at = words.length - found.count;
  const own = words.slice(words[at - 1] === '--' ? at - 1 : at);
  const command = await found.entry.load();
  let line: CommandLine | null = null;
  const leaf = makeLeaf(found.entry, command, terminal, onFlag, (all) => {
    const end = own.indexOf('--');
    const afterCount = end === -1 ? 0 : own.length - end - 1;
    const restAt = command.takesAllWords ? 0 : all.length - (command.rest === undefined ? 0 : afterCount);
    const [operands, rest] = [all.slice(0, restAt), all.slice(restAt)];
    assertFlags(toCalled(command), given, words);
    assertGivenOnce(toCalled(command), given);
    assertArguments(command, operands);
    line = { command, given, operands, rest };
  });
  parseWords(leaf, own);
  return line;
}

function toCommander(name: string, { stdout }: Pick<Terminal, 'stdout'>): Commander {
  const columns = Math.min(stdout.columns ?? MAX_WIDTH, MAX_WIDTH);
  return newCommander(name, { columns, write: (text) => void stdout.write(text) });
}

function toCalled(command: Command): Called {
  const { name, takesValue, takesAllWords } = command;
  return {
    name,
    line: `leasehold ${name}`,
    flags: takesAllWords === true ? {} : flagsOf(command),
    arguments: command.arguments ?? [],
    ...(takesValue === true ? { valueError: valueInArguments } : {}),
  };
}

/** Rejects cases that commander allows: an empty argument, and a program without `--`. @throws UsageError */
function assertArguments(command: Command, operands: readonly string[]): void {
  const wanted = command.arguments ?? [];
  const empty = wanted.find(({ count }, at) => count !== 'many' && operands[at] === '');
  if (empty !== undefined) throw missingArgument(toCalled(command), empty.name);
  if (command.rest !== undefined && operands.length > wanted.length)
    throw usageError(toCalled(command), `Put the command after --: leasehold ${command.name} -e NAME=PATH -- COMMAND`);
}

function makeProgram(
  terminal: Pick<Terminal, 'stdout'>,
  onFlag: OnFlag,
  onEntry: (entry: Entry, wordCount: number) => void,
): Commander {
  const program = toCommander('leasehold', terminal)
    .configureHelp({ visibleCommands: ({ commands }) => commands.flatMap(leavesOf), subcommandTerm: nameOf })
    .description(DESCRIPTION)
    .version(`leasehold ${readVersion()}`, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help');
  setUpParent(program, 'COMMAND [ARGUMENT …] [FLAG …]');
  for (const [name, flag] of Object.entries(CLIENT_FLAGS)) addFlag(program, name, flag, onFlag).hideHelp();
  for (const { title, entries } of GROUPS) for (const entry of entries) addEntry(program, title, entry, onEntry);
  return program;
}

/** Sets up a command that has subcommands. Without one it prints its help. */
function setUpParent(parent: Commander, usage: string): void {
  parent
    .usage(usage)
    .allowUnknownOption()
    .allowExcessArguments()
    .enablePositionalOptions()
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : toUsageError(null, error);
    })
    .action(() => {
      const [word] = parent.args;
      if (word === undefined) return parent.outputHelp();
      throw unknownCommand(
        nameOf(parent),
        word,
        parent.commands.map((each) => each.name()),
      );
    });
}

/** Command groups, such as `policy`, which do nothing without a subcommand. */
const NOUNS = new WeakSet<Commander>();

function leavesOf(commander: Commander): readonly Commander[] {
  return [...(NOUNS.has(commander) ? [] : [commander]), ...commander.commands.flatMap(leavesOf)];
}

function addEntry(
  program: Commander,
  title: string,
  entry: Entry,
  onEntry: (entry: Entry, wordCount: number) => void,
): void {
  const words = entry.name.split(' ');
  const parent = words.slice(0, -1).reduce((above, noun) => findOrAddNoun(above, noun, title), program);
  const added = parent.command(words.at(-1) ?? '').helpGroup(`${title}:`);
  if (NOUNS.has(parent)) parent.usage(parent.commands.map((each) => each.name()).join('|'));
  added
    .summary(entry.summary)
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .enablePositionalOptions()
    .passThroughOptions()
    .action(() => onEntry(entry, added.args.length));
}

function makeLeaf(
  { summary }: Entry,
  command: Command,
  terminal: Pick<Terminal, 'stdout'>,
  onFlag: OnFlag,
  onWords: (words: readonly string[]) => void,
): Commander {
  const { about = [], takesAllWords } = command;
  const examples = Object.entries(command.examples ?? {});
  const leaf = toCommander(`leasehold ${command.name}`, terminal)
    .description([`${summary}.`, ...about].join('\n\n'))
    .usage(usageOf(command))
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : toUsageError(toCalled(command), error);
    })
    .action(() => onWords(leaf.args));
  if (examples.length > 0)
    leaf.addHelpText(
      'after',
      ['', 'Examples:', ...examples.flatMap(([line, effect]) => [`  # ${effect}`, `  ${line}`])].join('\n'),
    );
  if (takesAllWords === true)
    return leaf.helpOption(false).allowUnknownOption().allowExcessArguments().passThroughOptions();
  leaf.allowExcessArguments(command.rest !== undefined);
  for (const { name, help, count } of command.arguments ?? []) {
    const placeholder = { one: `<${name}>`, optional: `[${name}]`, many: `[${name}...]` }[count];
    leaf.addArgument(new Argument(placeholder, help));
  }
  const { help, ...flags } = flagsOf(command);
  if (help !== undefined) leaf.helpOption('-h, --help', help.help);
  for (const [name, flag] of Object.entries(flags)) {
    const option = addFlag(leaf, name, flag, onFlag);
    if (Object.hasOwn(CONNECTION_FLAGS, name)) option.helpGroup('Connection flags:');
  }
  return leaf;
}

function findOrAddNoun(program: Commander, noun: string, title: string): Commander {
  const found = program.commands.find((each) => each.name() === noun);
  if (found !== undefined) return found;
  const added = program.command(noun).helpGroup(`${title}:`);
  NOUNS.add(added);
  setUpParent(added, '');
  return added;
}

function usageOf(command: Command): string {
  const words = (command.arguments ?? []).map(({ name, count }) =>
    count === 'one' ? name : count === 'optional' ? `[${name}]` : `[${name} …]`,
  );
  const hasFlags = Object.keys(flagsOf(command)).length > 1;
  return [
    ...words,
    ...(hasFlags ? ['[FLAG …]'] : []),
    ...(command.rest === undefined ? [] : ['--', command.rest]),
  ].join(' ');
}

function nameOf(commander: Commander): string {
  return commander.parent === null ? '' : `${nameOf(commander.parent)} ${commander.name()}`.trim();
}

function unknownCommand(noun: string, word: string, known: readonly string[]): UsageError {
  if (word.startsWith('-')) return unknownFlag(word);
  const near = nearest(word, known);
  return new UsageError(
    `unknown ${noun === '' ? '' : `${noun} `}command${near === null ? '' : `; did you mean \`${near}\`?`}`,
    noun === '' ? 'To list all commands: leasehold --help' : `Usage: leasehold ${noun} ${known.join('|')}`,
  );
}

/** A flag before the command. WHY its value is never repeated: it may be a secret. */
function unknownFlag(word: string): UsageError {
  const [given = ''] = word.split('=');
  if (given === '--token')
    return new UsageError(
      'there is no --token, because other users can see arguments',
      'Use --token-file FILE or LEASEHOLD_TOKEN',
    );
  const near = nearest(given.replace(/^-+/, ''), Object.keys(CLIENT_FLAGS));
  return new UsageError(
    `unknown flag before the command${near === null ? '' : `; did you mean --${near}?`}`,
    'To list all commands and their flags: leasehold --help',
  );
}

/**
 * Resolves to the exit code. `interruptible` returns the command's abort signal, given the signals to ignore, and
 * whether a second signal must not end the process.
 */
export async function main(
  words: readonly string[],
  terminal: Terminal,
  interruptible: (ignored: readonly NodeJS.Signals[], endsItself: boolean) => AbortSignal,
): Promise<number> {
  const ignored = readIgnored(terminal.environment);
  ignore(ignored);
  let line: CommandLine | null;
  try {
    line = await parseCommandLine(words, terminal);
  } catch (error) {
    const { reportError } = await import('./report-error.ts');
    return reportError({ terminal, noun: '' }, error, null);
  }
  if (line === null) return EXIT.OK;
  const { runCommandLine } = await import('./invocation.ts');
  return runCommandLine(line, terminal, (endsItself) => interruptible(ignored, endsItself));
}
