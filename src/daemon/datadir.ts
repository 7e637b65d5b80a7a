/** The data directory: what may be taken for one, and whether there was a vault in it. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrivateDir, StartError } from './files.ts';

/** What a vault's directory has. SOURCE: decisions, "The product". */
const NAMES = {
  databaseFile: 'leasehold.db',
  tokenFile: 'daemon.token',
  addressFile: 'daemon.address',
  agentsDir: 'agents',
  rootKeyFile: 'root.key',
  lockFile: 'lock',
  anchorFile: 'log.anchor',
} as const;
const OURS: readonly string[] = Object.values(NAMES);
/** What a volume's own directory may hold. */
const EMPTY_VOLUME = 'lost+found';

/** Where each of them lies. */
export function layOut(dir: string): Readonly<Record<keyof typeof NAMES, string>> {
  return {
    databaseFile: join(dir, NAMES.databaseFile),
    tokenFile: join(dir, NAMES.tokenFile),
    addressFile: join(dir, NAMES.addressFile),
    agentsDir: join(dir, NAMES.agentsDir),
    rootKeyFile: join(dir, NAMES.rootKeyFile),
    lockFile: join(dir, NAMES.lockFile),
    anchorFile: join(dir, NAMES.anchorFile),
  };
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // It is not there, or is no directory: others say so.
    return [];
  }
}

/** Makes the directory private, unless it was meant for something else. @throws StartError, and then nothing was changed */
export function openDataDir(dir: string): void {
  const names = namesIn(dir).filter((name) => name !== EMPTY_VOLUME);
  if (names.length > 0 && !names.some((name) => OURS.includes(name))) {
    throw new StartError(
      `${dir} holds other things and no vault; nothing was changed. Give a new or an empty --data-dir.`,
    );
  }
  ensurePrivateDir(dir);
}

/** Whether something is left of a vault that was used: an administrator's token, a key of an agent, a write-ahead log. */
export function hasRemains(dir: string): boolean {
  const names = namesIn(dir);
  const agents = namesIn(layOut(dir).agentsDir).filter((name) => !name.startsWith('.'));
  return names.includes(NAMES.tokenFile) || names.includes(`${NAMES.databaseFile}-wal`) || agents.length > 0;
}

/** The database of a vault that was used is gone. */
export function lostDatabase(file: string): StartError {
  return new StartError(
    `${file} is missing or empty, but its directory has the token or the agents' keys of a vault: the database was lost, or it is a PostgreSQL and --database is missing. Restore a backup; or, to begin anew, give another --data-dir.`,
  );
}
