/**
 * The program to run. Checks that it can be executed, before leases are requested and with the PATH that it will have.
 * Starts it with the umask and the ignored signals that this process inherited.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { join } from 'node:path';
import type { Masking } from '../masking/masking.ts';
import { NOT_EXECUTABLE, NOT_FOUND } from './exit-status.ts';

const DEFAULT_PATH = '/bin:/usr/bin';
/** Part of the first line that the system reads. SOURCE: execve(2), BINPRM_BUF_SIZE */
const FIRST_LINE_BYTES = 256;

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
