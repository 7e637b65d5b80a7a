/**
 * The files of a data directory, and names joined to a directory. Every path that is built from a name, an id or a
 * field of a file uses `childPath`, so that it can never leave its directory.
 */
import { join } from 'node:path';
import { StartupError } from './errors.ts';

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

/** Common limit of file systems, in bytes. */
const MAX_NAME_BYTES = 255;

const FORBIDDEN = ['/', '\\', '\0'];

/**
 * @throws StartupError unless the name is one path segment other than `.` or `..`. The message never repeats the name.
 */
export function childPath(directory: string, name: string): string {
  const isName = name !== '' && name !== '.' && name !== '..' && name.isWellFormed();
  const isSegment = isName && !FORBIDDEN.some((character) => name.includes(character));
  if (isSegment && Buffer.byteLength(name) <= MAX_NAME_BYTES) return join(directory, name);
  throw new StartupError(
    `A file name in ${directory} must be 1 to ${MAX_NAME_BYTES} bytes without / and \\, and not . or .. itself.`,
  );
}
