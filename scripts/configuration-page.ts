/**
 * Writes docs/configuration.md from the declarations of the flags: `node scripts/launch.mjs
 * scripts/configuration-page.ts`. A test checks the result.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { CLIENT_FLAGS } from '../src/flags/client-flags.ts';
import { flagText } from '../src/flags/command-line.ts';
import type { Flags } from '../src/flags/flag.ts';
import { SERVER_FLAGS } from '../src/server/flag-table.ts';

const FILE = path.resolve(import.meta.dirname, '../docs/configuration.md');

/** Escapes characters with a meaning in a Markdown table. */
const inTable = (text: string): string => text.replaceAll('|', '\\|');

function table(flags: Flags): string[] {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const { variable, byDefault, help } = flag;
    const cells = [flagText(name, flag), variable, byDefault].map((text) =>
      text === undefined ? '' : `\`${inTable(text)}\``,
    );
    return `| ${[...cells, inTable(help)].join(' | ')} |`;
  });
  return ['| flag | variable | default | meaning |', '|---|---|---|---|', ...rows];
}

export function configurationPage(): string {
  return [
    '# Configuration',
    '',
    'A flag overrides its environment variable, and the variable overrides the default. A switch is `1`, `0`, `true` or',
    '`false` in the environment. An unknown flag and a wrong value are errors that name the flag or the variable and the',
    'rule. This page is generated from the declarations of the flags.',
    '',
    '## Server',
    '',
    '`npm start -- FLAG …` in a checkout, `leasehold server FLAG …` where the package is installed. The server also rejects',
    'an unknown variable that begins with `LEASEHOLD_`.',
    '',
    ...table(SERVER_FLAGS),
    '',
    '## CLI',
    '',
    'All subcommands that call a server take these flags. [cli.md](cli.md) describes the files in which they can be set too.',
    '`LEASEHOLD_TOKEN` is a token itself.',
    '',
    ...table(CLIENT_FLAGS),
    '',
  ].join('\n');
}

if (import.meta.main) writeFileSync(FILE, configurationPage());
