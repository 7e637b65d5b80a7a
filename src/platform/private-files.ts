/** Files of the data directory: private, whole, and on disk when a write returns. */

import {
  chmodSync,
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StartupError } from './errors.ts';

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;

export function lstatOrNull(path: string) {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** Makes the directory if it is missing, and private if it was not. @throws StartupError for a link or what is no directory */
export function ensurePrivateDir(path: string): void {
  const found = lstatOrNull(path);
  if (found === null) {
    makeDir(path);
    return;
  }
  if (!found.isDirectory()) throw new StartupError(`${path} must be a directory, and not a link to one.`);
  assertOurs(path, found.uid);
  if ((found.mode & 0o777) !== PRIVATE_DIR) chmodSync(path, PRIVATE_DIR);
}

/** Step by step: where the system makes none, Node's own recursion does not end. */
function makeDir(path: string): void {
  const parent = dirname(path);
  if (lstatOrNull(parent) === null) makeDir(parent);
  mkdirSync(path, { mode: PRIVATE_DIR });
  syncDir(parent);
}

/** Whether the file is there; makes it private if it was not. @throws StartupError for a link or what is no file */
export function checkPrivateFile(path: string): boolean {
  const found = lstatOrNull(path);
  if (found === null) return false;
  if (!found.isFile()) throw new StartupError(`${path} must be a file, and not a link to one.`);
  assertOurs(path, found.uid);
  if ((found.mode & 0o777) !== PRIVATE_FILE) chmodSync(path, PRIVATE_FILE);
  return true;
}

function assertOurs(path: string, owner: number): void {
  const self = process.getuid?.();
  if (self !== undefined && owner !== self) throw new StartupError(`${path} belongs to another user.`);
}

const UNFINISHED = /^\.[0-9a-f-]{36}\.new$/;

/** Removes what a crash left of `writePrivateFile`. */
export function removeUnfinished(dir: string): void {
  for (const name of readdirSync(dir)) if (UNFINISHED.test(name)) rmSync(join(dir, name));
}

/** Writes a file that is there whole or not at all: beside it first, synced, then renamed. */
export function writePrivateFile(path: string, text: string): void {
  const beside = join(dirname(path), `.${crypto.randomUUID()}.new`);
  try {
    writeNewFile(beside, text);
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
  syncDir(dirname(path));
}

/** Writes a file that must not be there yet, synced. */
export function writeNewFile(path: string, text: string): void {
  const descriptor = openSync(path, 'wx', PRIVATE_FILE);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes what was created, renamed or removed in the directory last. */
export function syncDir(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Whether others than the owner may read the file. */
export function isReadableByOthers(path: string): boolean {
  return (statSync(path).mode & 0o077) !== 0;
}
