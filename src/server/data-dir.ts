/** The data directory: which directory is accepted as one, and whether a vault was ever created from it. */

import { readdirSync } from 'node:fs';
import { layOut, OURS } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, ensurePrivateDir, writePrivateFile } from '../platform/private-files.ts';

/** What a volume's own directory may hold. */
const EMPTY_VOLUME = 'lost+found';

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // It is not there, or is no directory: others say so.
    return [];
  }
}

/** Makes the directory private, unless it was meant for something else. @throws StartupError, and then nothing was changed */
export function openDataDir(dir: string): void {
  const names = namesIn(dir).filter((name) => name !== EMPTY_VOLUME);
  if (names.length > 0 && !names.some((name) => OURS.includes(name))) {
    throw new StartupError(
      `${dir} holds other things and no vault; nothing was changed. Give a new or an empty --data-dir.`,
    );
  }
  ensurePrivateDir(dir);
}

/**
 * Whether the directory has served a vault, so that a missing or empty database is a loss and not a first start. An agent's key is
 * published only after its registration is durable; the token, the log of the database and empty directories prove nothing, because
 * a first start that was interrupted leaves them too.
 */
export function hadVault(dir: string): boolean {
  const { markerFile, agentsDir } = layOut(dir);
  return checkPrivateFile(markerFile) || namesIn(agentsDir).some((name) => !name.startsWith('.'));
}

const MARKER_TEXT =
  'A vault was created from this directory. While this file exists, a lost database is never replaced by an empty one.\n';

/** Records that the directory has a vault. ORDER: only once that vault is durable, so that an interrupted first start can be repeated. */
export function markVault(dir: string): void {
  const { markerFile } = layOut(dir);
  if (!checkPrivateFile(markerFile)) writePrivateFile(markerFile, MARKER_TEXT);
}

/** @returns the reason not to start where the vault's database was deleted or emptied. */
export function databaseMissing(file: string): StartupError {
  return new StartupError(
    `${file} is missing or empty, but its directory has served a vault: the database was lost, or it is a PostgreSQL and --database is missing. Restore a backup; or, to begin with an empty vault, give another --data-dir.`,
  );
}
