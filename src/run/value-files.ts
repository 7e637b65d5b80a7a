/**
 * Delivers values as files in a private directory, in memory if possible, which is removed when the program has ended.
 * ORDER: the clean-up is registered before the first value is written.
 */

import { lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../platform/errors.ts';
import { childPath } from '../platform/paths.ts';
import { isSafeParent, lstatOrNull, privacyViolation, writeNewFile } from '../platform/private-files.ts';
import type { Secret } from '../vault/credentials/credential.ts';

const IN_MEMORY = '/dev/shm';
const PREFIX = 'leasehold-run-';

export interface PrivateFiles {
  readonly directory: string;
  /** Writes the value to a new file of this name, byte for byte, and returns its path. */
  write(name: string, value: Secret): string;
  /** Removes the directory. Also called when this process exits. Idempotent. */
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
  const violation = privacyViolation(lstatSync(directory), 'directory');
  if (violation !== null) {
    remove();
    throw new UsageError(`${directory}: the new directory ${violation}`);
  }
  return {
    directory,
    write(name, value) {
      const path = childPath(directory, name);
      writeNewFile(path, value.reveal());
      return path;
    },
    remove,
  };
}

/**
 * Creates the directory in the first of XDG_RUNTIME_DIR, /dev/shm and the temporary directory that is safe and
 * writable.
 */
function makeDirectory(runtimeDir: string | undefined): string {
  const own = runtimeDir?.startsWith('/') && isPrivateDir(runtimeDir) ? [runtimeDir] : [];
  for (const place of [...own, ...[IN_MEMORY, tmpdir()].filter(isSafe)]) {
    try {
      return mkdtempSync(join(place, PREFIX));
    } catch {
      // The directory is full or read-only, so the next one is tried.
    }
  }
  throw new UsageError('no directory is both safe and writable', 'Point TMPDIR at a directory of your own.');
}

function isPrivateDir(directory: string): boolean {
  const found = lstatOrNull(directory);
  return found !== null && privacyViolation(found, 'directory') === null;
}

function isSafe(directory: string): boolean {
  const found = lstatOrNull(directory);
  return found?.isDirectory() === true && isSafeParent(found);
}
