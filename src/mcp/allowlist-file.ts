/** The file of `--commands`: who can write it decides what is run, so it has to be the operator's own. */
import { readFile } from 'node:fs/promises';
import { codeOf } from '../platform/errno.ts';
import { type AllowedCommand, parseAllowList } from './allowlist.ts';
import { SetupError } from './errors.ts';
import { checkOwnership } from './ownership.ts';

const FIELD = '--commands';
const MOST_BYTES = 256 * 1024;

/** `path` is absolute. @throws SetupError */
export async function readAllowList(path: string): Promise<AllowedCommand[]> {
  const found = await checkOwnership(path, FIELD);
  // WHY before it is read: a pipe would be waited for.
  if (!found.isFile()) throw new SetupError(`${FIELD}: must be a file`);
  if (found.size > MOST_BYTES) throw new SetupError(`${FIELD}: the file is longer than 256 KiB`);
  try {
    return parseAllowList(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(`${FIELD}: cannot be read${codeOf(error)}`);
  }
}
