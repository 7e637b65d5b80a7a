/**
 * Delivers values as files in a private directory, in memory if possible, which is removed when the program has ended.
 * ORDER: the clean-up is registered before the first value is written.
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
  /** Writes the value to a new file of this name, byte for byte, and returns its path. */
  write(name: string, value: Secret): string;
  /** Removes the directory; also called when this process exits. Idempotent. */
  remove(): void;
}

/** `runtimeDir`: the caller's XDG_RUNTIME_DIR. @throws UsageError when no safe directory is writable */
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
    throw new UsageError(`${directory}: the new directory must have the mode 0700`);
  }
  return {
    directory,
    write(name, value) {
      if (name.includes('/') || name.startsWith('.'))
        throw new UsageError('the name of the variable cannot be used as a file name');
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

/**
 * Creates the directory in the first safe and writable one of XDG_RUNTIME_DIR, /dev/shm and the temporary directory.
 */
function makeDirectory(runtimeDir: string | undefined): string {
  const own = runtimeDir?.startsWith('/') && isOurs(runtimeDir) ? [runtimeDir] : [];
  for (const place of [...own, ...[IN_MEMORY, tmpdir()].filter(isSafe)]) {
    try {
      return mkdtempSync(join(place, PREFIX));
    } catch {
      // Full or read-only: try the next one.
    }
  }
  throw new UsageError('no directory is both safe and writable', 'Point TMPDIR at a directory of your own.');
}

function isOurs(directory: string): boolean {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & OTHERS) === 0;
}

/** Whether only this user and root can move files created there. */
function isSafe(directory: string): boolean {
  const found = lstatSync(directory, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true || (found.uid !== 0 && found.uid !== process.getuid?.())) return false;
  return (found.mode & STICKY) !== 0 || (found.mode & OTHERS_WRITE) === 0;
}
