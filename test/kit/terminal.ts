/** A program inside a real terminal, whose screen a test reads and whose keys it presses. */
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from '@lydell/node-pty';
import type { Scope } from './folder.ts';

const SEEN_WITHIN_MS = 30_000;
const LOOKS_EVERY_MS = 20;

export interface Screen {
  readonly pid: number;
  /** Everything shown so far, as bytes that are UTF-8. */
  shown(): string;
  press(keys: string): void;
  resize(columns: number, rows: number): void;
  /** Resolves when it has been shown; rejects when it has not been in time. */
  see(text: string | RegExp): Promise<void>;
  /** Nothing is read from it until the terminal is resumed. */
  pause(): void;
  resume(): void;
  readonly ended: Promise<{ readonly code: number; readonly signal: number }>;
}

/** 80 columns and 24 rows. */
export function openTerminal(
  scope: Scope,
  [file = '', ...words]: readonly string[],
  { folder, environment }: { readonly folder: string; readonly environment: Readonly<Record<string, string>> },
): Screen {
  const pty = spawn(file, words, { name: 'xterm', cols: 80, rows: 24, cwd: folder, env: { ...environment } });
  let shown = '';
  pty.onData((text) => (shown += text));
  const ended = new Promise<{ code: number; signal: number }>((resolve) =>
    pty.onExit(({ exitCode, signal = 0 }) => resolve({ code: exitCode, signal })),
  );
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  scope.after(async () => {
    if (!hasEnded) pty.kill('SIGKILL');
    await ended;
  });
  return {
    pid: pty.pid,
    shown: () => shown,
    press: (keys) => pty.write(keys),
    resize: (columns, rows) => pty.resize(columns, rows),
    async see(text) {
      const deadline = performance.now() + SEEN_WITHIN_MS;
      while (!(typeof text === 'string' ? shown.includes(text) : text.test(shown))) {
        if (hasEnded || performance.now() > deadline)
          throw new Error(`${text} was not seen in time, but: ${JSON.stringify(shown)}`);
        await sleep(LOOKS_EVERY_MS);
      }
    },
    pause: () => pty.pause(),
    resume: () => pty.resume(),
    ended,
  };
}
