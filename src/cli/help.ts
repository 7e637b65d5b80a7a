/** Renders help from the command table: the overview and a page for each command. */
import type { Command, Flag } from './command.ts';
import { CONNECTION_FLAGS, flagsOf } from './flags.ts';

const MAX_WIDTH = 100;

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}

export function overview(groups: readonly Group[]): string {
  const names = groups.flatMap(({ commands }) => commands.map(({ name }) => name));
  const longest = Math.max(...names.map((name) => name.length));
  const sections = groups.flatMap(({ title, commands }) => [
    `${title}:`,
    ...commands.map(({ name, summary }) => `  ${name.padEnd(longest)}  ${summary}`),
    '',
  ]);
  return [
    'Leasehold: a credential vault for AI agents. Credentials are held by lease, never owned.',
    '',
    'Usage: leasehold COMMAND [ARGUMENT …] [FLAG …]',
    '',
    ...sections,
    'Run leasehold COMMAND --help for details. On the machine of the service the address and token are found',
    'automatically; leasehold doctor shows their sources.',
    '',
  ].join('\n');
}

/** Overview of the commands that start with the noun. */
export function nounOverview(noun: string, commands: readonly Command[]): string {
  const longest = Math.max(...commands.map(({ name }) => name.length));
  return [
    `Usage: leasehold ${noun} ${commands.map(({ name }) => name.slice(noun.length + 1)).join('|')}`,
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(longest)}  ${summary}`),
    '',
  ].join('\n');
}

export function usageLine(command: Command): string {
  const { name, arguments: wanted = [], rest } = command;
  const words = wanted.map(({ name: each, count }) =>
    count === 'one' ? each : count === 'optional' ? `[${each}]` : `[${each} …]`,
  );
  const hasFlags = flagsOf(command).length > 1;
  return [
    'leasehold',
    name,
    ...words,
    ...(hasFlags ? ['[FLAG …]'] : []),
    ...(rest === undefined ? [] : ['--', rest]),
  ].join(' ');
}

/** `columns` is the width of the terminal. */
export function page(command: Command, columns = MAX_WIDTH): string {
  const width = Math.min(columns, MAX_WIDTH);
  const { summary, about = [], arguments: wanted = [], examples = [] } = command;
  const all = flagsOf(command);
  const own = all.filter((flag) => !CONNECTION_FLAGS.includes(flag));
  const common = all.filter((flag) => CONNECTION_FLAGS.includes(flag));
  return [
    `${summary}.`,
    '',
    `Usage: ${usageLine(command)}`,
    '',
    ...about.flatMap((paragraph) => [...wrap(paragraph, width), '']),
    ...section(
      'Arguments',
      wanted.map(({ name, help }) => [name, help]),
      width,
    ),
    ...section('Flags', own.map(toRow), width),
    ...section('Connection flags', common.map(toRow), width),
    ...section(
      'Examples',
      examples.map(({ line, does }) => [line, does]),
      width,
    ),
  ].join('\n');
}

export function flagText({ name, short, value }: Flag): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === null ? '' : ` ${value}`}`;
}

function toRow(flag: Flag): [string, string] {
  const again = flag.isRepeatable === true ? '; repeatable' : '';
  return [flagText(flag), `${flag.help}${again}`];
}

function section(title: string, rows: readonly (readonly [string, string])[], width: number): string[] {
  if (rows.length === 0) return [];
  const isNarrow = rows.every(([left]) => left.length <= 34);
  const longest = Math.max(...rows.map(([left]) => left.length));
  const lines = rows.flatMap(([left, right]) => {
    if (!isNarrow) return [`  ${left}`, ...wrap(right, width - 6).map((line) => `      ${line}`)];
    const [first = '', ...others] = wrap(right, width - longest - 4);
    const indent = ' '.repeat(longest + 4);
    return [`  ${left.padEnd(longest)}  ${first}`, ...others.map((line) => indent + line)];
  });
  return [`${title}:`, ...lines, ''];
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
