// The command at a separate terminal, with scripted input.

import { stripVTControlCharacters } from 'node:util';
import { spawn } from '@lydell/node-pty';
import { COMMAND, COMPILED } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';

export interface Screen {
  /** Everything shown so far. */
  shown(): string;
  /** Types the text when the output ends with the prompt. */
  answer(question: RegExp, text: string): Promise<void>;
  /** Resolves to the exit code. */
  ended(): Promise<number>;
}

interface Options {
  readonly home: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

const WITHIN_MS = 120_000;

export function startScreen(scope: Scope, words: readonly string[], { home, folder, environment }: Options): Screen {
  const [program, ...first] = COMMAND;
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    TERM: 'xterm',
    NO_COLOR: '1',
    ...COMPILED,
    ...environment,
  };
  const child = spawn(program, [...first, ...words], { cwd: folder, env, cols: 200, rows: 50 });
  let shown = '';
  let since = 0;
  let exitCode: number | null = null;
  child.onData((text) => {
    shown += text;
  });
  child.onExit((exit) => {
    exitCode = exit.exitCode;
  });
  scope.after(() => exitCode === null && child.kill('SIGKILL'));
  const until = async (is: () => boolean): Promise<void> => {
    for (const begun = performance.now(); !is(); ) {
      if (performance.now() - begun > WITHIN_MS) throw new Error(`not within ${WITHIN_MS} ms; shown: ${shown}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  // Cursor movements are not part of the text.
  const said = (): string => stripVTControlCharacters(shown.slice(since));
  return {
    shown: () => shown,
    async answer(question, text) {
      await until(() => question.test(said()));
      since = shown.length;
      child.write(text);
    },
    async ended() {
      await until(() => exitCode !== null);
      return exitCode ?? -1;
    },
  };
}
