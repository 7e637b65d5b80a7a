/**
 * Makes the program of the command table with commander: it parses a command line, prints help, and reports usage
 * errors. Errors never repeat an argument or the value of a flag, because it may be a secret.
 */
import { Argument, Command as Commander, CommanderError, Option } from 'commander';
import { readVersion } from '../platform/version.ts';
import type { Command, Flag } from './command.ts';
import { CONNECTION_FLAGS, flagsOf, OUTPUT_FLAGS } from './flags.ts';
import { GROUPS } from './table.ts';
import type { Terminal } from './terminal.ts';
import { assertArguments, assertFlags, toUsageError, unknownCommand } from './usage-errors.ts';

const MAX_WIDTH = 100;
const DESCRIPTION = `Leasehold: a credential vault for AI agents. Credentials are held by lease, never owned.

Run leasehold COMMAND --help for details. On the machine of the service the address and token are found automatically; \
leasehold doctor shows their sources.`;

interface CommandLine {
  readonly command: Command;
  /** The texts given for each flag, by name; a switch has the text `true`. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  /** The words that are not flags, before `--`. */
  readonly operands: readonly string[];
  /** The words after `--` of a command that takes them. */
  readonly rest: readonly string[];
}

/** Returns null when it printed help or the version. @throws UsageError */
export function parseCommandLine(typed: readonly string[], terminal: Pick<Terminal, 'stdout'>): CommandLine | null {
  const [first, ...others] = typed;
  const words = first === 'help' ? [...others, '--help'] : first === 'version' ? ['--version'] : typed;
  const given = new Map<string, string[]>();
  let parsed: CommandLine | null = null;
  const program = makeProgram({
    terminal,
    onFlag: (name, value) => void given.set(name, [...(given.get(name) ?? []), value]),
    onCommand(command, all) {
      const end = words.indexOf('--');
      const afterCount = end === -1 ? 0 : words.length - end - 1;
      const restAt = command.takesAllWords ? 0 : all.length - (command.rest === undefined ? 0 : afterCount);
      const [operands, rest] = [all.slice(0, restAt), all.slice(restAt)];
      assertFlags(command, given, words);
      assertArguments(command, operands);
      parsed = { command, given, operands, rest };
    },
  });
  try {
    program.parse(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error;
  }
  return parsed;
}

interface Handlers {
  readonly terminal: Pick<Terminal, 'stdout'>;
  onFlag(name: string, value: string): void;
  onCommand(command: Command, words: readonly string[]): void;
}

function makeProgram(handlers: Handlers): Commander {
  const { stdout } = handlers.terminal;
  const program = new Commander('leasehold')
    .description(DESCRIPTION)
    .optionsGroup('Flags:')
    .version(`leasehold ${readVersion()}`, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      outputError: () => undefined,
      getOutHelpWidth: () => Math.min(stdout.columns ?? MAX_WIDTH, MAX_WIDTH),
    })
    .configureHelp({
      minWidthToWrap: 20,
      visibleCommands: ({ commands }) => commands.flatMap(leavesOf),
      subcommandTerm: nameOf,
      optionTerm: ({ flags }) => flags.replace(/<(.*)>/, '$1'),
    });
  setUpParent(program, 'COMMAND [ARGUMENT …] [FLAG …]');
  // Flags that all commands share may precede the command's name.
  for (const [name, flag] of Object.entries({ ...OUTPUT_FLAGS, ...CONNECTION_FLAGS }))
    addFlag(program, name, flag, handlers).hideHelp();
  for (const { title, commands } of GROUPS)
    for (const command of commands) addCommand(program, title, command, handlers);
  return program;
}

/** A command that has subcommands: alone it prints its help. */
function setUpParent(parent: Commander, usage: string): void {
  parent
    .usage(usage)
    .optionsGroup('Flags:')
    .allowUnknownOption()
    .allowExcessArguments()
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

/** The words before verbs that do nothing without one. */
const NOUNS = new WeakSet<Commander>();

/** The commands that do something: those below a noun in place of it. */
function leavesOf(commander: Commander): readonly Commander[] {
  return [...(NOUNS.has(commander) ? [] : [commander]), ...commander.commands.flatMap(leavesOf)];
}

function addCommand(program: Commander, title: string, command: Command, handlers: Handlers): void {
  const words = command.name.split(' ');
  const nouns = words.slice(0, -1);
  const parent = nouns.reduce((above, noun) => findOrAddNoun(above, noun, title), program);
  const { summary, about = [], examples = [], takesAllWords } = command;
  const added = parent.command(words.at(-1) ?? '').helpGroup(`${title}:`);
  if (NOUNS.has(parent)) parent.usage(parent.commands.map((each) => each.name()).join('|'));
  // WHY: flags after the verb are those of the verb.
  else if (parent !== program) parent.enablePositionalOptions();
  added
    .summary(summary)
    .description([`${summary}.`, ...about].join('\n\n'))
    .usage(usageOf(command))
    .optionsGroup('Flags:')
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : toUsageError(command, error);
    })
    .action(() => handlers.onCommand(command, added.args));
  if (examples.length > 0)
    added.addHelpText(
      'after',
      ['', 'Examples:', ...examples.flatMap(({ line, does }) => [`  # ${does}`, `  ${line}`])].join('\n'),
    );
  if (takesAllWords === true) {
    added.helpOption(false).allowUnknownOption().allowExcessArguments().passThroughOptions();
    return;
  }
  added.allowExcessArguments(command.rest !== undefined);
  for (const { name, help, count } of command.arguments ?? []) {
    const placeholder = { one: `<${name}>`, optional: `[${name}]`, many: `[${name}...]` }[count];
    added.addArgument(new Argument(placeholder, help));
  }
  const { help, ...flags } = flagsOf(command);
  if (help !== undefined) added.helpOption('-h, --help', help.help);
  for (const [name, flag] of Object.entries(flags)) addFlag(added, name, flag, handlers);
}

function findOrAddNoun(program: Commander, noun: string, title: string): Commander {
  const found = program.commands.find((each) => each.name() === noun);
  if (found !== undefined) return found;
  const added = program.command(noun).helpGroup(`${title}:`);
  NOUNS.add(added);
  setUpParent(added, '');
  return added;
}

function addFlag(commander: Commander, name: string, flag: Flag, { onFlag }: Handlers): Option {
  const value = flag.value === null || flag.value.startsWith('[') ? flag.value : `<${flag.value}>`;
  const option = new Option(flagText(name, { ...flag, value }), helpOf(flag));
  if (Object.hasOwn(CONNECTION_FLAGS, name)) option.helpGroup('Connection flags:');
  commander
    .addOption(option)
    .on(`option:${name}`, (given?: string) => onFlag(name, given ?? (value === null ? 'true' : '')));
  return option;
}

/** As in help: `-o, --output FORMAT`. */
function flagText(name: string, { short, value }: Flag): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === null ? '' : ` ${value}`}`;
}

function helpOf({ help, isRepeatable }: Flag): string {
  return isRepeatable === true ? `${help}; repeatable` : help;
}

/** What follows the command's name: `PATH [FLAG …]`. */
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

/** `policy show`; empty for the program. */
function nameOf(commander: Commander): string {
  return commander.parent === null ? '' : `${nameOf(commander.parent)} ${commander.name()}`.trim();
}
