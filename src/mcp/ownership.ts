/**
 * Checks that no other user can change a file: itself, and every directory and link on the way to it, belongs to the user
 * that runs this server or to root, and only they may write. SOURCE: OpenSSH's safe_path, which looks so at
 * authorized_keys.
 */

import type { Stats } from 'node:fs';
import { lstat, readlink, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';

const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
/** As many as the kernel follows. */
const MOST_LINKS = 40;

/** `path` is absolute. Resolves to the status of its target. `field` is named in errors. @throws UsageError */
export async function checkOwnership(path: string, field: string): Promise<Stats> {
  const self = process.getuid?.();
  // Where there are no users of this kind.
  if (self === undefined) return named(stat(path), field);
  // WHY by hand: what is run later is found through the same links again, so that they count as much as where they lead
  // now.
  const names = namesOf(path);
  let at = '/';
  let found = await named(lstat(at), field);
  let links = 0;
  checkOne(found, at, self, field);
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const next = name === '..' ? dirname(at) : join(at, name);
    found = await named(lstat(next), field);
    checkOne(found, next, self, field);
    if (!found.isSymbolicLink()) {
      at = next;
      continue;
    }
    if (++links > MOST_LINKS) throw new UsageError(`${field}: cannot be read (ELOOP)`);
    const target = await named(readlink(next), field);
    names.unshift(...namesOf(target));
    if (target.startsWith('/')) at = '/';
  }
  return found;
}

const namesOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.');

function checkOne(found: Stats, path: string, self: number, field: string): void {
  if (found.uid !== self && found.uid !== 0) {
    throw new UsageError(`${field}: ${path} must belong to the user that runs this server, or to root`);
  }
  // The mode of a link means nothing. In a sticky directory, such as /tmp, what is ours is removed or exchanged by
  // nobody else.
  if (found.isSymbolicLink() || (found.isDirectory() && (found.mode & STICKY) !== 0)) return;
  if ((found.mode & OTHERS_WRITE) !== 0) {
    throw new UsageError(`${field}: ${path} must not be writable by a group or by all (chmod go-w)`);
  }
}

async function named<T>(asked: Promise<T>, field: string): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw new UsageError(`${field}: cannot be read${errnoSuffix(error)}`);
  }
}
