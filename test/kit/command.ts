/** The CLI with a home and an environment that the test chooses: in this process, or as a process. */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { type CommandLine, needsProcess, runInProcess } from './commandline.ts';
import { type Scope, temporaryDirectory } from './directory.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENTRY = join(ROOT, 'src/bin/leasehold.ts');

interface CommandResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions
  extends Partial<Pick<CommandLine, 'input' | 'columns' | 'signal' | 'onStdout' | 'onStderr' | 'onEndsItself'>> {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Runs `run`, `mcp` and `server` in this process too; programs of `run` get its standard input. */
  readonly isInProcess?: true;
}

interface TypedTerminal {
  /** All output so far, including control sequences. */
  screen(): string;
  type(text: string): void;
  /** Resolves when the screen matches; rejects when the command ends without. */
  shows(wanted: RegExp): Promise<void>;
  readonly ended: Promise<{ readonly exitCode: number | null }>;
}

export interface Home {
  readonly path: string;
  /** Arguments as from a shell. Resolves when the command ends. Runs in this process if the command allows it. */
  leasehold(words: readonly string[], run?: RunOptions): Promise<CommandResult>;
  /** The same at a terminal of this process, whose input is typed; `openPseudoTerminal` starts a real one. */
  onTerminal(words: readonly string[], run?: RunOptions): TypedTerminal;
  /** The same in a separate process. */
  spawned(words: readonly string[], run?: RunOptions): Promise<CommandResult>;
}

/** The compile cache is shared between runs, as for the command itself: a run takes a third of the time. */
export const COMPILED = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/leasehold') } as const;

/** PATH without this checkout's program, whose directory README adds: printed commands depend on it. */
export const SYSTEM_PATH = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((directory) => resolve(directory) !== join(ROOT, 'scripts'))
  .join(delimiter);

/** Starts the command without `scripts/leasehold`, with the same `--`. */
export const COMMAND = [process.execPath, '--disable-proto=delete', '--', ENTRY] as const;

/** A home directory and environment variables for each run. Output has no colours unless `NO_COLOR` is empty. */
export function newHome(scope: Scope, environment: Readonly<Record<string, string>> = {}): Home {
  const path = join(temporaryDirectory(scope), 'home');
  mkdirSync(path);
  const toLine = (
    words: readonly string[],
    {
      input = '',
      environment: more = {},
      cwd = path,
      columns = null,
      signal = null,
      onStdout = null,
      onStderr = null,
      onEndsItself = null,
    }: RunOptions = {},
  ): CommandLine => ({
    words,
    input,
    columns,
    environment: { PATH: SYSTEM_PATH, HOME: path, NO_COLOR: '1', ...COMPILED, ...environment, ...more },
    cwd,
    signal,
    onStdout,
    onStderr,
    onEndsItself,
  });
  return {
    path,
    leasehold: (words, run) =>
      needsProcess(words) && run?.isInProcess !== true
        ? runProcess(toLine(words, run))
        : runInProcess(toLine(words, run)),
    onTerminal: (words, run) => openTerminal((io) => runInProcess(toLine(words, { columns: 80, ...run, ...io }))),
    spawned: (words, run) => runProcess(toLine(words, run)),
  };
}

type TerminalStreams = Required<Pick<RunOptions, 'onStdout' | 'onStderr'>> & { readonly input: PassThrough };

function openTerminal(run: (streams: TerminalStreams) => Promise<CommandResult>): TypedTerminal {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  let seen = '';
  const checks = new Set<() => void>();
  const print = (text: string): void => {
    seen += text;
    for (const check of checks) check();
  };
  const ended = run({ input, onStdout: print, onStderr: print }).then(({ code }) => ({ exitCode: code }));
  return {
    screen: () => seen,
    // WHY not at once: the command listens for keys only after its prompt was written.
    type: (text) => void setImmediate(() => input.write(text)),
    shows: (wanted) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (!wanted.test(seen)) return;
          checks.delete(check);
          resolve();
        };
        checks.add(check);
        check();
        void ended.then(() => reject(new Error(`ended, and never showed ${wanted}: ${seen}`)), reject);
      }),
    ended,
  };
}

function runProcess({ words, input, environment, cwd }: CommandLine): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const [program, ...first] = COMMAND;
    const child = spawn(program, [...first, ...words], {
      cwd,
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (chunk) => (stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk) => (stderr += chunk));
    child.stdin.on('error', () => undefined).end(typeof input === 'string' || input instanceof Uint8Array ? input : '');
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}
