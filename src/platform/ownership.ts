/**
 * Who else may read or change a file, by its owner and mode. Every check of a private or trusted file uses these rules.
 * A system without numeric users has no such owners and modes: there, every file belongs to this user.
 */

import type { Stats } from 'node:fs';

type Access = Pick<Stats, 'uid' | 'mode'>;

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

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

const isSticky = ({ mode }: Access): boolean => (mode & STICKY) !== 0;

const hasTrustedOwner = (found: Access): boolean => isOwn(found) || found.uid === 0;
