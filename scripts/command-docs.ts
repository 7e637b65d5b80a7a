/**
 * Writes docs/commands from the command table: `node scripts/launch.mjs scripts/command-docs.ts`. A test checks the
 * result.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Help } from 'commander';
import type { Command, Flags } from '../src/cli/command.ts';
import { CONNECTION_FLAGS, flagsOf } from '../src/cli/flags.ts';
import { flagText, helpOf, usageOf } from '../src/cli/program.ts';
import { GROUPS, type Group } from '../src/cli/table.ts';

const DIRECTORY = path.resolve(import.meta.dirname, '../docs/commands');
const MAX_COLUMNS = 120;

function nameOf(command: Command): string {
  return `${command.name.replaceAll(' ', '-')}.md`;
}

/** Escapes the characters that have a meaning in a Markdown table. */
const inTable = (text: string): string => text.replaceAll('|', '\\|');

function rows(flags: Flags): string[] {
  return Object.entries(flags).map(
    ([name, flag]) => `| \`${inTable(flagText(name, flag))}\` | ${inTable(helpOf(flag))} |`,
  );
}

function table(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}`, '', '| | |', '|---|---|', ...lines, ''];
}

/** The page of a command, as Markdown. */
export function commandPage(command: Command): string {
  const { name, summary, about = [], arguments: wanted = [], examples = [], isLocal } = command;
  const own = Object.fromEntries(
    Object.entries(flagsOf(command)).filter(([each]) => !Object.hasOwn(CONNECTION_FLAGS, each)),
  );
  return [
    `# leasehold ${name}`,
    '',
    `${summary}.`,
    '',
    '```text',
    `leasehold ${name} ${usageOf(command)}`.trimEnd(),
    '```',
    '',
    ...about.flatMap((paragraph) => [new Help().boxWrap(paragraph, MAX_COLUMNS), '']),
    ...table(
      'Arguments',
      wanted.map((each) => `| \`${each.name}\` | ${inTable(each.help)} |`),
    ),
    ...table('Flags', rows(own)),
    ...(isLocal === true ? [] : ['The [connection flags](README.md#connection-flags) apply too.', '']),
    ...(examples.length === 0
      ? []
      : ['## Examples', '', '```sh', ...examples.flatMap(({ line, does }) => [`# ${does}`, line]), '```', '']),
  ].join('\n');
}

/** The list of all commands, as Markdown. */
export function indexPage(groups: readonly Group[]): string {
  return [
    '# Commands',
    '',
    '`npx --no-install leasehold …` in the checkout, `leasehold …` where it is installed. [docs/cli.md](../cli.md)',
    'describes what all commands share.',
    '',
    ...groups.flatMap(({ title, commands }) => [
      `## ${title}`,
      '',
      '| | |',
      '|---|---|',
      ...commands.map((command) => `| [\`${command.name}\`](${nameOf(command)}) | ${command.summary} |`),
      '',
    ]),
    ...table('Connection flags', rows(CONNECTION_FLAGS)),
  ].join('\n');
}

/** The pages by file name. */
export function allPages(groups: readonly Group[]): Map<string, string> {
  const pages = groups.flatMap(({ commands }) =>
    commands.map((command) => [nameOf(command), commandPage(command)] as const),
  );
  return new Map([['README.md', indexPage(groups)], ...pages]);
}

if (import.meta.main) {
  const pages = allPages(GROUPS);
  mkdirSync(DIRECTORY, { recursive: true });
  for (const name of readdirSync(DIRECTORY)) if (!pages.has(name)) rmSync(path.join(DIRECTORY, name));
  for (const [name, text] of pages) writeFileSync(path.join(DIRECTORY, name), text);
  process.stdout.write(`docs/commands: ${pages.size} pages.\n`);
}
