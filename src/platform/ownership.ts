/**
 * Who else may read or change a file, by its owner and mode. Every check of a private or trusted file uses these rules.
 * A system without numeric users has no such owners and modes: there, every file belongs to this user.
 */

import type { Stats } from 'node:fs';
import { lstat, readlink, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoSuffix } from './errno.ts';
import { UsageError } from './errors.ts';

type Access = Pick<Stats, 'uid' | 'mode'>;

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
/** The limit of the Linux kernel. */
const MAX_LINKS = 40;

export function isOwn({ uid }: Access): boolean {
  const self = process.getuid?.();
  return self === undefined || uid === self;
}

/** Whether no other user may read or change it. */
export function isPrivate({ mode }: Access): boolean {
  return (mode & OTHERS) === 0;
}

/** Whether only this user and root may change it. */
export function isTrusted(found: Access): boolean {
  return hasTrustedOwner(found) && (found.mode & OTHERS_WRITE) === 0;
}

/** Whether only this user and root can move or delete a file that this user creates in the directory. */
export function isSafeParent(found: Access): boolean {
  return hasTrustedOwner(found) && (isSticky(found) || (found.mode & OTHERS_WRITE) === 0);
}

/** The rule that a private file or directory breaks, for the end of a message; null if it breaks none. */
export function privacyViolation(found: Stats, kind: 'file' | 'directory'): string | null {
  const isKind = kind === 'file' ? found.isFile() : found.isDirectory();
  if (!isKind) return `must be a ${kind} and not a symbolic link`;
  if (!isOwn(found)) return 'must belong to the user that runs this program';
  if (!isPrivate(found)) return `must be private: chmod ${kind === 'file' ? '600' : '700'}`;
  return null;
}

/**
 * Checks that no other user can change a file: the file, and every directory and link on the path to it, belongs to
 * this user or to root, and only they may write to it. Resolves to the status of the link's target. `path` is absolute;
 * errors name `field`. SOURCE: safe_path in OpenSSH, which checks authorized_keys in this way. @throws UsageError
 */
export async function checkTrustedPath(path: string, field: string): Promise<Stats> {
  if (process.getuid === undefined) return orUsageError(stat(path), field);
  // WHY not `realpath`: the file is opened later through the same links, so each of them must be trusted too.
  const names = namesOf(path);
  let at = '/';
  let found = await orUsageError(lstat(at), field);
  let links = 0;
  checkTrusted(found, at, field);
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const next = name === '..' ? dirname(at) : join(at, name);
    found = await orUsageError(lstat(next), field);
    checkTrusted(found, next, field);
    if (!found.isSymbolicLink()) {
      at = next;
      continue;
    }
    if (++links > MAX_LINKS) throw new UsageError(`${field}: cannot be read (ELOOP)`);
    const target = await orUsageError(readlink(next), field);
    names.unshift(...namesOf(target));
    if (target.startsWith('/')) at = '/';
  }
  return found;
}

const namesOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.');

const isSticky = ({ mode }: Access): boolean => (mode & STICKY) !== 0;

const hasTrustedOwner = (found: Access): boolean => isOwn(found) || found.uid === 0;

function checkTrusted(found: Stats, path: string, field: string): void {
  if (!hasTrustedOwner(found)) {
    throw new UsageError(`${field}: ${path} must belong to the user that runs this program, or to root`);
  }
  // The mode of a link has no effect. In a sticky directory, such as /tmp, other users cannot replace our files.
  const isTrustedAnyway = found.isSymbolicLink() || (found.isDirectory() && isSticky(found));
  if (!isTrustedAnyway && !isTrusted(found)) {
    throw new UsageError(`${field}: ${path} must not be writable by a group or by all (chmod go-w)`);
  }
}

async function orUsageError<T>(result: Promise<T>, field: string): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw new UsageError(`${field}: cannot be read${errnoSuffix(error)}`);
  }
}
