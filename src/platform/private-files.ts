/**
 * Private files and directories, and checks by owner and mode whether other users may read or change a file. Writes
 * are atomic, and on disk when they return. INVARIANT: owner and mode are read back after each creation and change,
 * before anything secret is written. Some file systems silently ignore a mode. On systems without numeric users every
 * file counts as this user's.
 */
import {
  chmodSync,
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StartupError } from './errors.ts';

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;

const OPEN_MODES_VARIABLE = 'LEASEHOLD_ACCEPT_OPEN_MODES';

/** Accepts files that other users may read. WHY the environment: the threads of this process share it. */
export function acceptOpenModes(): void {
  process.env[OPEN_MODES_VARIABLE] = '1';
}

/** Reads back the owner and the mode that the system has set. @throws StartupError */
export function assertPrivate(path: string, found: Stats): void {
  if (!isOwn(found)) {
    throw new StartupError(
      `${path} belongs to another user. Run this program as that user, or use a directory of your own.`,
    );
  }
  if (isPrivate(found) || ['1', 'true'].includes(process.env[OPEN_MODES_VARIABLE] ?? '')) return;
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
  throw new StartupError(
    `Other users may read ${path}: its mode is ${mode}, and its file system does not change modes, like FAT, a Windows drive under WSL, and some FUSE and network mounts. Use a directory on another file system, or set ${OPEN_MODES_VARIABLE}=1 if no other user has access to this machine.`,
  );
}

export function lstatOrNull(path: string) {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** Creates a missing directory; restricts an existing one to its owner. @throws StartupError */
export function ensurePrivateDir(path: string): void {
  if (!restrict(path, 'directory', PRIVATE_DIR)) makeDir(path);
}

/** Whether the file exists; restricts it to its owner. @throws StartupError */
export function checkPrivateFile(path: string): boolean {
  return restrict(path, 'file', PRIVATE_FILE);
}

/**
 * Whether the path exists. @throws StartupError for a link, for another kind of file, and for a file of another user
 */
function restrict(path: string, kind: 'file' | 'directory', mode: number): boolean {
  const found = lstatOrNull(path);
  if (found === null) return false;
  const isKind = kind === 'file' ? found.isFile() : found.isDirectory();
  if (!isKind) throw new StartupError(`${path} must be a ${kind}, and not a link to one.`);
  if (isOwn(found) && (found.mode & 0o777) !== mode) {
    try {
      chmodSync(path, mode);
    } catch {
      // The mode of the file is checked below.
    }
  }
  assertPrivate(path, lstatSync(path));
  return true;
}

/** WHY not `recursive`: Node's recursion does not end if the system rejects the creation of a directory. */
function makeDir(path: string): void {
  const parent = dirname(path);
  if (lstatOrNull(parent) === null) makeDir(parent);
  mkdirSync(path, { mode: PRIVATE_DIR });
  try {
    assertPrivate(path, lstatSync(path));
  } catch (error) {
    rmdirSync(path);
    throw error;
  }
  syncDir(parent);
}

/** Matches unfinished files, and the write-ahead log, the index and the journal of an unfinished database. */
const UNFINISHED = /^\.[0-9a-f-]{36}\.new(-wal|-shm|-journal)?$/;

/** A file that replaces the one at the path when it is complete. */
export function temporaryPath(path: string): string {
  return join(dirname(path), `.${crypto.randomUUID()}.new`);
}

/** Deletes temporary files, which a crash leaves behind. */
export function removeUnfinished(dir: string): void {
  for (const name of readdirSync(dir)) if (UNFINISHED.test(name)) rmSync(join(dir, name));
}

/** Writes a file atomically: to a temporary file in the same directory, synced, then renamed. */
export function writePrivateFile(path: string, text: string): void {
  const temporary = temporaryPath(path);
  try {
    writeNewFile(temporary, text);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncDir(dirname(path));
}

/**
 * Writes a file that must not exist yet. The file is then complete and synced, or absent. @throws EEXIST if the path
 * exists
 */
export function writeNewPrivateFile(path: string, text: string): void {
  const temporary = temporaryPath(path);
  try {
    writeNewFile(temporary, text);
    publishNewFile(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** The errors of a file system without hard links, such as FAT, or of one that another program provides. */
const WITHOUT_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/**
 * Gives a complete, synced file its name in the same directory. WHY a link: it never replaces another file, and a crash
 * leaves no empty file with the name. @throws the error EEXIST if the path exists
 */
export function publishNewFile(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
    rmSync(temporary);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && WITHOUT_LINKS.includes(error.code))) throw error;
    renameToNew(temporary, path);
  }
  syncDir(dirname(path));
}

/** ORDER: the name is created exclusively before the rename, which therefore never replaces another file. */
function renameToNew(temporary: string, path: string): void {
  closeSync(openSync(path, 'wx', PRIVATE_FILE));
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** Creates and syncs a file that must not exist yet. */
export function writeNewFile(path: string, text: string): void {
  const descriptor = openSync(path, 'wx', PRIVATE_FILE);
  try {
    assertPrivate(path, fstatSync(descriptor));
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Whether other users may use the directory, because the operator accepted that. */
export function isOpenToOthers(path: string): boolean {
  return !isPrivate(statSync(path));
}

/** Makes created, renamed and deleted entries of the directory durable. */
export function syncDir(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Warns if other users may read the file. Follows links. A pipe, such as the `<(…)` of a shell, is not a file. */
export function warnIfReadableByOthers(path: string, warn: (line: string) => void): void {
  const found = statSync(path);
  if (found.isFile() && !isPrivate(found)) warn(`Other users may read ${path}. Run chmod 600 on it.`);
}

/** Far more than the length of any key, passphrase or token. */
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * Reads a file with one secret, which may be a pipe. @throws StartupError if it is longer, or cannot be read; `cause`
 * is then the system error
 */
export function readSecretBytes(path: string): Buffer {
  const buffer = Buffer.alloc(MAX_SECRET_BYTES + 1);
  let length = 0;
  try {
    const descriptor = openSync(path, 'r');
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) {
        read = readSync(descriptor, buffer, length, buffer.length - length, null);
      }
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown error';
    throw new StartupError(`${path} cannot be read: ${reason}.`, { cause: error });
  }
  if (length < buffer.length) return buffer.subarray(0, length);
  throw new StartupError(`${path} is longer than ${MAX_SECRET_BYTES / 1024} KiB, so it is not the file of a secret.`);
}

type Access = Pick<Stats, 'uid' | 'mode'>;

const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

function isOwn({ uid }: Access): boolean {
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
