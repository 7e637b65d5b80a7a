/** What is run, and whether it can be: looked up before anything is asked of the service, in the path that the program will have. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Masking } from '../masking/masking.ts';
import { NOT_EXECUTABLE, NOT_FOUND } from './exit-status.ts';

const DEFAULT_PATH = '/bin:/usr/bin';
/** As far as the system reads it. SOURCE: execve(2), BINPRM_BUF_SIZE */
const FIRST_LINE_BYTES = 256;

export interface Program {
  readonly file: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Null leaves the streams alone. */
  readonly masking: Masking | null;
  /** That it shall have; null for ours. */
  readonly umask: number | null;
  /** Signals that it shall ignore; it has the system's defaults for all others. */
  readonly ignored: readonly NodeJS.Signals[];
}

export interface ExecutableError {
  readonly code: typeof NOT_FOUND | typeof NOT_EXECUTABLE;
  readonly message: string;
}

const IS = { [NOT_FOUND]: 'is not there', [NOT_EXECUTABLE]: 'cannot be executed' } as const;
const ABSENT: ExecutableError = { code: NOT_FOUND, message: 'command not found' };
const FORBIDDEN: ExecutableError = { code: NOT_EXECUTABLE, message: 'cannot be executed' };

/** Null where it can be run. `path` is the PATH of its environment. */
export function checkExecutable(file: string, path: string | undefined): ExecutableError | null {
  const places = file.includes('/')
    ? [file]
    : (path || DEFAULT_PATH).split(':').map((folder) => join(folder || '.', file));
  const found = places.map(look);
  if (found.includes(null)) return null;
  const fault = found.find((one) => one?.code === NOT_EXECUTABLE) ?? found.find((one) => one !== ABSENT) ?? ABSENT;
  return { code: fault.code, message: `${file}: ${fault.message}` };
}

/** Null where it runs. */
function look(place: string): ExecutableError | null {
  const fault = lookAtFile(place);
  if (fault !== null) return fault;
  const interpreter = readInterpreter(place);
  const other = interpreter === null ? null : lookAtFile(interpreter);
  if (other === null) return null;
  return { code: other.code, message: `the interpreter in its first line, ${interpreter}, ${IS[other.code]}` };
}

function lookAtFile(place: string): ExecutableError | null {
  try {
    if (statSync(place).isDirectory()) return place.includes('/') ? FORBIDDEN : ABSENT;
    accessSync(place, constants.X_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? FORBIDDEN : ABSENT;
  }
}

/** Null where there is none, which is then the shell, or where nobody can say. */
function readInterpreter(place: string): string | null {
  try {
    // WHY: what is not a file, such as a pipe, may keep a reader waiting.
    if (!statSync(place).isFile()) return null;
    const line = readBeginning(place, FIRST_LINE_BYTES);
    return /^#![ \t]*([^ \t\n\0]+)/.exec(line)?.[1] ?? null;
  } catch {
    return null;
  }
}

function readBeginning(place: string, length: number): string {
  const bytes = Buffer.alloc(length);
  const fd = openSync(place, 'r');
  try {
    return bytes.toString('utf8', 0, readSync(fd, bytes));
  } finally {
    closeSync(fd);
  }
}

/** Begins something with the umask that the program shall have: it is the process's own for that moment. */
export function withUmask<T>(umask: number | null, begin: () => T): T {
  if (umask === null) return begin();
  const own = process.umask(umask);
  try {
    return begin();
  } finally {
    process.umask(own);
  }
}
