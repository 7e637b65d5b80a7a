/** The file of `--commands`: who can write it decides what is run, so it has to be the operator's own. */

import { readFile } from 'node:fs/promises';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { type AllowedCommand, parseAllowList } from './allowlist.ts';
import { checkOwnership } from './ownership.ts';

const FIELD = '--commands';
const MOST_BYTES = 256 * 1024;

/** `path` is absolute. @throws UsageError */
export async function readAllowList(path: string): Promise<AllowedCommand[]> {
  const found = await checkOwnership(path, FIELD);
  // WHY before it is read: a pipe would be waited for.
  if (!found.isFile()) throw new UsageError(`${FIELD}: must be a file`);
  if (found.size > MOST_BYTES) throw new UsageError(`${FIELD}: the file is longer than 256 KiB`);
  try {
    return parseAllowList(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${FIELD}: cannot be read${errnoSuffix(error)}`);
  }
}
