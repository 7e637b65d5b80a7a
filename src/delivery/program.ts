/** What is run, and whether it can be: looked up before anything is asked of the service, in the path that the program will have. */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { NOT_EXECUTABLE, NOT_FOUND } from './ending.ts';
import type { Masking } from './masking.ts';

const DEFAULT_PATH = '/bin:/usr/bin';

export interface Program {
  readonly file: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Null leaves the streams alone. */
  readonly masking: Masking | null;
  /** That it shall have; null for ours. */
  readonly umask: number | null;
}

export interface NoProgram {
  readonly code: typeof NOT_FOUND | typeof NOT_EXECUTABLE;
  readonly message: string;
}

/** Null where it can be run. `path` is the PATH of its environment. */
export function findFault(file: string, path: string | undefined): NoProgram | null {
  const places = file.includes('/')
    ? [file]
    : (path || DEFAULT_PATH).split(':').map((folder) => join(folder || '.', file));
  const found = places.map(look);
  if (found.includes('runs')) return null;
  if (found.includes('is there')) return { code: NOT_EXECUTABLE, message: `${file}: cannot be executed` };
  return { code: NOT_FOUND, message: `${file}: command not found` };
}

function look(place: string): 'runs' | 'is there' | 'is not there' {
  try {
    if (statSync(place).isDirectory()) return place.includes('/') ? 'is there' : 'is not there';
    accessSync(place, constants.X_OK);
    return 'runs';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EACCES' ? 'is there' : 'is not there';
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
