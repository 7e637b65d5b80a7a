/**
 * Joins one name to a directory. Every path that is made from a name, an id or a field of a file goes through here, so
 * that it can never leave its directory.
 */
import { join } from 'node:path';
import { StartupError } from './errors.ts';

/** Common limit of file systems, in bytes. */
const MAX_NAME_BYTES = 255;

/** @throws StartupError unless the name is one segment of a path, and not `.` or `..`. The message never repeats it. */
export function childPath(directory: string, name: string): string {
  const isSegment = name !== '' && name !== '.' && name !== '..' && !/[/\\\u0000]/.test(name) && name.isWellFormed();
  if (isSegment && Buffer.byteLength(name) <= MAX_NAME_BYTES) return join(directory, name);
  throw new StartupError(
    `A file name in ${directory} must be 1 to ${MAX_NAME_BYTES} bytes without / and \\, and not . or .. itself.`,
  );
}
