/** The files of a data directory, for the service that owns it and for commands on the same machine. */
import { join } from 'node:path';

/** SOURCE: docs/decisions.md, "The process". */
const NAMES = {
  databaseFile: 'leasehold.db',
  createdFile: 'vault.created',
  tokenFile: 'daemon.token',
  addressFile: 'daemon.address',
  proofFile: 'daemon.proof',
  agentsDir: 'agents',
  rootKeyFile: 'root.key',
  lockFile: 'lock',
  rollbackMarkerFile: 'rollback.marker',
  checkpointsFile: 'checkpoints.log',
} as const;
export const KNOWN_FILES: readonly string[] = Object.values(NAMES);

/** The path of each file. */
export function dataDirPaths(dir: string) {
  const paths = Object.entries(NAMES).map(([file, name]) => [file, join(dir, name)]);
  return Object.fromEntries(paths) as Readonly<Record<keyof typeof NAMES, string>>;
}
