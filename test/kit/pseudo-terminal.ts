/** Runs a program on a real pseudo-terminal with typed input and readable output. */
import { spawn } from '@lydell/node-pty';
import { COMPILED, SYSTEM_PATH } from './command.ts';
import type { Scope } from './directory.ts';

/** Only a hang reaches this limit. */
const TIMEOUT_MS = 120_000;

export interface PseudoTerminal {
  readonly pid: number;
  /** All output so far, including control sequences. */
  screen(): string;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Stops reading the output until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves when the screen matches. Rejects with the screen when that takes too long. */
  shows(wanted: { test(screen: string): boolean }, withinMs?: number): Promise<void>;
  readonly ended: Promise<{ readonly exitCode: number; readonly signal: number | undefined }>;
}

interface Start {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
}

export function openPseudoTerminal(scope: Scope, command: readonly string[], start: Start): PseudoTerminal {
  const [program = '', ...words] = command;
  const { cwd, environment, columns = 80, rows = 24 } = start;
  const env = { PATH: SYSTEM_PATH, TERM: 'xterm-256color', ...COMPILED, ...environment };
  const child = spawn(program, words, { cwd, cols: columns, rows, env });
  let seen = '';
  const checks = new Set<() => void>();
  child.onData((text) => {
    seen += text;
    for (const check of checks) check();
  });
  let hasEnded = false;
  const ended = new Promise<{ exitCode: number; signal: number | undefined }>((resolve) =>
    child.onExit(({ exitCode, signal }) => {
      hasEnded = true;
      resolve({ exitCode, signal: signal === 0 ? undefined : signal });
    }),
  );
  scope.after(async () => {
    if (!hasEnded) child.kill('SIGKILL');
    await ended;
  });
  return {
    pid: child.pid,
    screen: () => seen,
    type: (text) => child.write(text),
    resize: (width, height) => child.resize(width, height),
    pause: () => child.pause(),
    resume: () => child.resume(),
    shows: (wanted, withinMs = TIMEOUT_MS) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => end(new Error(`never showed ${wanted instanceof RegExp ? wanted : 'what was expected'}: ${seen}`)),
          withinMs,
        );
        const end = (error: Error | null): void => {
          clearTimeout(timer);
          checks.delete(check);
          if (error === null) resolve();
          else reject(error);
        };
        const check = (): void => {
          if (wanted.test(seen)) end(null);
        };
        checks.add(check);
        check();
      }),
    ended,
  };
}
