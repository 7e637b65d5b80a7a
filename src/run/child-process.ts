/**
 * The process of the program: whether its file can be executed, the umask and the ignored signals that it inherits, the
 * signals that are forwarded to it, and its exit status, with which this process ends too.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Masking } from '../masking/masking.ts';

const DEFAULT_PATH = '/bin:/usr/bin';
/** Part of the first line that the system reads. SOURCE: execve(2), BINPRM_BUF_SIZE */
const FIRST_LINE_BYTES = 256;

export const NOT_FOUND = 127;
export const NOT_EXECUTABLE = 126;

export interface Program {
  readonly file: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Null for unmasked output on this process's own streams. */
  readonly masking: Masking | null;
  /** Null to inherit the umask of this process. */
  readonly umask: number | null;
  /** Signals that the program ignores; others have the system's default handlers. */
  readonly ignored: readonly NodeJS.Signals[];
}

export interface ExecutableError {
  readonly code: typeof NOT_FOUND | typeof NOT_EXECUTABLE;
  readonly message: string;
}

const IS = { [NOT_FOUND]: 'does not exist', [NOT_EXECUTABLE]: 'cannot be executed' } as const;
const ABSENT: ExecutableError = { code: NOT_FOUND, message: 'command not found' };
const FORBIDDEN: ExecutableError = { code: NOT_EXECUTABLE, message: 'cannot be executed' };

/** Returns null when the program can be executed. `path` is the PATH of its environment. */
export function checkExecutable(file: string, path: string | undefined): ExecutableError | null {
  const candidates = file.includes('/')
    ? [file]
    : (path || DEFAULT_PATH).split(':').map((directory) => join(directory || '.', file));
  const found = candidates.map(checkCandidate);
  if (found.includes(null)) return null;
  const fault = found.find((one) => one?.code === NOT_EXECUTABLE) ?? found.find((one) => one !== ABSENT) ?? ABSENT;
  return { code: fault.code, message: `${file}: ${fault.message}` };
}

function checkCandidate(path: string): ExecutableError | null {
  const error = checkFile(path);
  if (error !== null) return error;
  const interpreter = readInterpreter(path);
  const interpreterError = interpreter === null ? null : checkFile(interpreter);
  if (interpreterError === null) return null;
  const { code } = interpreterError;
  return { code, message: `the interpreter in its first line, ${interpreter}, ${IS[code]}` };
}

function checkFile(path: string): ExecutableError | null {
  try {
    if (statSync(path).isDirectory()) return path.includes('/') ? FORBIDDEN : ABSENT;
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? FORBIDDEN : ABSENT;
  }
}

/** Returns null when the first line names no interpreter or cannot be read. */
function readInterpreter(path: string): string | null {
  try {
    // WHY: reading a pipe could block.
    if (!statSync(path).isFile()) return null;
    const line = Buffer.alloc(FIRST_LINE_BYTES);
    const descriptor = openSync(path, 'r');
    try {
      readSync(descriptor, line);
    } finally {
      closeSync(descriptor);
    }
    return /^#![ \t]*([^ \t\n\0]+)/.exec(line.toString())?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Starts a program under its own umask, which this process uses for that moment. */
export function withUmask<T>(umask: number | null, start: () => T): T {
  if (umask === null) return start();
  const previous = process.umask(umask);
  try {
    return start();
  } finally {
    process.umask(previous);
  }
}

const ENV = '/usr/bin/env';
const SHELL = '/bin/sh';

/**
 * The command to start instead of the program's, so that it ignores the signals that this process inherited as ignored.
 * Node resets them for every child, so `env` or a shell ignores them again and then executes the program.
 */
export function withIgnoredSignals({
  file,
  words,
  ignored,
}: Program): readonly [file: string, words: readonly string[]] {
  if (ignored.length === 0) return [file, words];
  const numbers = ignored.map((signal) => system.signals[signal]);
  // WHY env is preferred: a shell drops variables whose names it cannot assign. env takes a file name with = for an
  // assignment.
  if (!file.includes('=') && canIgnore()) return [ENV, [`--ignore-signal=${numbers.join(',')}`, '--', file, ...words]];
  return [SHELL, ['-c', `trap '' ${numbers.join(' ')}; exec "$0" "$@"`, file, ...words]];
}

function canIgnore(): boolean {
  return spawnSync(ENV, ['--ignore-signal=HUP', '--version'], { stdio: 'ignore', env: {} }).status === 0;
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** A terminal sends these to every process in the foreground, including the program. */
const FROM_TERMINALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

type Receiver = (signal: NodeJS.Signals) => void;

/** Handles signals until `release`, so that none ends this process before it has cleaned up. */
export class Signals {
  #receiver: Receiver;
  readonly #listener: Receiver = (signal) => {
    if (!this.#ignored.has(signal)) this.#receiver(signal);
  };
  readonly #ignored: ReadonlySet<NodeJS.Signals>;

  /** Signals in `ignored` have no effect. */
  constructor(receiver: Receiver, ignored: readonly NodeJS.Signals[]) {
    this.#receiver = receiver;
    this.#ignored = new Set(ignored);
    for (const signal of FORWARDED) process.on(signal, this.#listener);
  }

  /** Forwards signals to a program in the same process group, which receives the terminal's signals directly. */
  forwardToSameGroup(send: Receiver): void {
    this.sendTo((signal) => {
      if (!(FROM_TERMINALS.has(signal) && isInForeground())) send(signal);
    });
  }

  sendTo(receiver: Receiver): void {
    this.#receiver = receiver;
  }

  release(): void {
    for (const signal of FORWARDED) process.off(signal, this.#listener);
  }
}

/** Whether this process group is in the terminal's foreground; false without a terminal. */
export function isInForeground(): boolean {
  try {
    // SOURCE: proc_pid_stat(5). The fields after the name in brackets are state, parent, group, session, terminal, and
    // the terminal's foreground group.
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return process.stdin.isTTY === true;
  }
}

export type ExitStatus = ({ readonly code: number } | { readonly signal: NodeJS.Signals }) & {
  /**
   * Whether a signal stopped the writing of remaining output, because this process's output may be blocked
   * indefinitely.
   */
  readonly wasInterrupted?: boolean;
  /** A line for the user: why the program did not start, or a notice that its output was lost. */
  readonly remark?: string;
};

/** The program exited with 0, but its output was lost. */
const OUTPUT_LOST = 2;
const SIGNALLED = 128;
const SIGNAL_DELIVERY_MS = 500;

/** WHY never sent to this process: a core dump would contain values. */
const CORE_DUMP_SIGNALS = new Set<NodeJS.Signals>([
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGSEGV',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGSYS',
]);

/** The exit status after this process's output could not be written; `code` is the system's error code. */
export function withWriteError(ending: ExitStatus, code: string): ExitStatus {
  const remark = `standard output cannot be written (${code})`;
  return 'code' in ending && ending.code === 0 ? { ...ending, code: OUTPUT_LOST, remark } : { ...ending, remark };
}

/**
 * Ends this process with the program's signal. Resolves to an exit code if there is no signal, or if the signal has no
 * effect.
 */
export async function exitLike(ending: ExitStatus): Promise<number> {
  if ('code' in ending) {
    if (ending.wasInterrupted === true) process.exit(ending.code);
    return ending.code;
  }
  const { signal } = ending;
  if (!CORE_DUMP_SIGNALS.has(signal)) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // SIGPIPE and a few more do not end a Node process.
    await sleep(SIGNAL_DELIVERY_MS);
  }
  return SIGNALLED + system.signals[signal];
}

export function signalOf(number: number): NodeJS.Signals | null {
  const found = Object.entries(system.signals).find(([, own]) => own === number);
  return (found?.[0] as NodeJS.Signals | undefined) ?? null;
}
