/** The data directory: checks of the directory, its lock, and whether it has ever served a vault. */
import { readdirSync } from 'node:fs';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths, KNOWN_FILES } from '../platform/paths.ts';
import { checkPrivateFile, ensurePrivateDir, writePrivateFile } from '../platform/private-files.ts';
import { DatabaseLock } from '../store/sqlite/database-lock.ts';

const EMPTY_VOLUME = 'lost+found';

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // The directory is missing, or the path is another kind of file, which `ensurePrivateDir` handles.
    return [];
  }
}

/** Restricts the directory to its owner, unless it contains other files. @throws StartupError, before any change */
export function openDataDir(dir: string): void {
  const names = namesIn(dir).filter((name) => name !== EMPTY_VOLUME);
  if (names.length > 0 && !names.some((name) => KNOWN_FILES.includes(name))) {
    throw new StartupError(
      `${dir} contains other files and no vault. Nothing was changed. Give a new or an empty --data-dir.`,
    );
  }
  ensurePrivateDir(dir);
}

/**
 * Ensures one server per data directory. The lock of the operating system ends with the process, so it is never stale.
 * @throws StartupError if another server holds it
 */
export function lockDataDir(dir: string): DatabaseLock {
  const { lockFile } = dataDirPaths(dir);
  checkPrivateFile(lockFile);
  const lock = DatabaseLock.take(lockFile);
  if (lock !== null) {
    checkPrivateFile(lockFile);
    return lock;
  }
  throw new StartupError(`Another Leasehold runs on ${dir}. Stop it first, or give another --data-dir.`);
}

/**
 * Whether the directory has served a vault, so that a missing or empty database is a loss and not a first startup. An
 * agent's key proves it, because it is published only after the registration is durable. The token, the write-ahead log
 * and empty directories prove nothing, because an interrupted first startup leaves them too.
 */
export function hadVault(dir: string): boolean {
  const { createdFile, agentsDir } = dataDirPaths(dir);
  return checkPrivateFile(createdFile) || namesIn(agentsDir).some((name) => !name.startsWith('.'));
}

const MARKER_TEXT =
  'A vault was created from this directory. While this file exists, a lost database is never replaced by an empty one.\n';

/**
 * Records that the directory has a vault. ORDER: after the vault is durable, so that an interrupted first startup can
 * be repeated.
 */
export function markVault(dir: string): void {
  const { createdFile } = dataDirPaths(dir);
  if (!checkPrivateFile(createdFile)) writePrivateFile(createdFile, MARKER_TEXT);
}

export function databaseMissing(file: string): StartupError {
  return new StartupError(
    `${file} is missing or empty, but its directory has served a vault: the database was lost, or it is in PostgreSQL and --database is missing. Restore a backup, or give another --data-dir to start an empty vault.`,
  );
}
