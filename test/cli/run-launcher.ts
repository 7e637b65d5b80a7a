/** The launcher of the command, next to a module that skips the installation, and shells that ignore signals. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { COMMAND } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import type { Scene } from './run-fixture.ts';

export function openLauncher(scope: Scope, { environment }: Scene) {
  const launcher = join(temporaryDirectory(scope), 'leasehold');
  copyFileSync(join(import.meta.dirname, '../../scripts/leasehold'), launcher);
  writeFileSync(`${launcher}.mjs`, `await import(${JSON.stringify(COMMAND.at(-1))});\n`);
  return {
    launcher,
    environment: {
      ...environment,
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      'A.B': 'kept',
    },
  };
}

/** The arguments of a shell that starts the command with these signals ignored, by their names for `trap`. */
export const ignoring = (signals: string, launcher: string, words: readonly string[]): string[] => [
  '-c',
  signals === '' ? 'exec "$@"' : `trap '' ${signals}; exec "$@"`,
  '-',
  launcher,
  ...words,
];
