/**
 * Values as files: a directory that nobody else can enter, in memory where the system has such a place, a file a value, gone when the
 * program has ended. ORDER: the directory is known to the clean-up before the first value is written.
 */

import { closeSync, constants, lstatSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Secret } from '../core/secret.ts';
import { UsageError } from '../platform/errors.ts';

const IN_MEMORY = '/dev/shm';
const PREFIX = 'leasehold-run-';
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
const PERMISSIONS = 0o777;

export interface PrivateFiles {
  readonly directory: string;
  /** Answers the path of the new file, which has the name and holds the value byte for byte. */
  write(name: string, value: Secret): string;
  /** Removes all of it; also done when this process exits. Doing it again is harmless. */
  remove(): void;
}

/** `runtimeDir` is the caller's XDG_RUNTIME_DIR. @throws UsageError where there is no place that others can't touch */
export function makePrivateFiles(runtimeDir = process.env['XDG_RUNTIME_DIR']): PrivateFiles {
  const directory = makeDirectory(runtimeDir);
  const remove = (): void => {
    process.off('exit', remove);
    rmSync(directory, { recursive: true, force: true });
  };
  process.on('exit', remove);
  const { uid, mode } = lstatSync(directory);
  if (uid !== process.getuid?.() || (mode & PERMISSIONS) !== 0o700) {
    remove();
    throw new UsageError(`${directory}: a directory that was just made has not the mode 0700`);
  }
  return {
    directory,
    write(name, value) {
      if (name.includes('/') || name.startsWith('.'))
        throw new UsageError('the name of a variable cannot be that of a file');
      const path = join(directory, name);
      const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
      const file = openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
      try {
        writeFileSync(file, value.reveal(), 'utf8');
      } finally {
        closeSync(file);
      }
      return path;
    },
    remove,
  };
}

/** In the user's own place, in memory that all share, or in the temporary directory: whichever is safe and can be had first. */
function makeDirectory(runtimeDir: string | undefined): string {
  const own = runtimeDir?.startsWith('/') && isOurs(runtimeDir) ? [runtimeDir] : [];
  for (const place of [...own, ...[IN_MEMORY, tmpdir()].filter(isSafe)]) {
    try {
      return mkdtempSync(join(place, PREFIX));
    } catch {
      // Full or read-only: there may be another place.
    }
  }
  throw new UsageError('no directory is both safe and writable', 'Point TMPDIR at a directory of your own.');
}

function isOurs(directory: string): boolean {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & OTHERS) === 0;
}

/** Whether nobody but us and root can move what we make there. */
function isSafe(directory: string): boolean {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true || (found.uid !== 0 && found.uid !== process.getuid?.())) return false;
  return (found.mode & STICKY) !== 0 || (found.mode & OTHERS_WRITE) === 0;
}
