/** The files of a data directory, for the service that owns it and for commands on the same machine. */
import { join } from 'node:path';

/** SOURCE: docs/decisions.md, "The process". */
const NAMES = {
  databaseFile: 'leasehold.db',
  markerFile: 'vault.created',
  tokenFile: 'daemon.token',
  addressFile: 'daemon.address',
  proofFile: 'daemon.proof',
  agentsDir: 'agents',
  rootKeyFile: 'root.key',
  lockFile: 'lock',
  anchorFile: 'log.anchor',
} as const;
export const KNOWN_FILES: readonly string[] = Object.values(NAMES);

/** The path of each file. */
export function dataDirPaths(dir: string): Readonly<Record<keyof typeof NAMES, string>> {
  return {
    databaseFile: join(dir, NAMES.databaseFile),
    markerFile: join(dir, NAMES.markerFile),
    tokenFile: join(dir, NAMES.tokenFile),
    addressFile: join(dir, NAMES.addressFile),
    proofFile: join(dir, NAMES.proofFile),
    agentsDir: join(dir, NAMES.agentsDir),
    rootKeyFile: join(dir, NAMES.rootKeyFile),
    lockFile: join(dir, NAMES.lockFile),
    anchorFile: join(dir, NAMES.anchorFile),
  };
}
