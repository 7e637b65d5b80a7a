/** The root key file. Made only when both it and the vault are new; otherwise what is missing or wrong is a reason not to start. */

import { readFileSync } from 'node:fs';
import { parseRootKey } from '../crypto/keys.ts';
import { newRootKey } from '../crypto/random.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, isReadableByOthers, writePrivateFile } from '../platform/private-files.ts';

export interface RootKeyPlace {
  readonly file: string;
  /** Whether it is the data directory's own file, which is kept private; another one is only complained about. */
  readonly isDefaultFile: boolean;
  /** Whether there is a vault already. */
  readonly vaultExists: boolean;
}

/** Reads the file once, because it may be a pipe. @throws StartupError */
export function readRootKey(
  { file, isDefaultFile, vaultExists }: RootKeyPlace,
  warn: (line: string) => void,
): Uint8Array {
  if (isDefaultFile) checkPrivateFile(file);
  const text = readIfThere(file);
  if (text === null) {
    if (vaultExists) {
      throw new StartupError(
        `The root key is missing: ${file}. The vault cannot be opened without it; put it back from your backup. No new one is made.`,
      );
    }
    const rootKey = newRootKey();
    writePrivateFile(file, `${Buffer.from(rootKey).toString('base64')}\n`);
    return rootKey;
  }
  if (!isDefaultFile && isReadableByOthers(file)) warn(`Others than its owner may read ${file}: chmod 600 it.`);
  const rootKey = parseRootKey(text);
  if (rootKey === null)
    throw new StartupError(`${file} is not a root key: it must hold 32 bytes as base64, on one line.`);
  return rootKey;
}

/** Null where the file does not exist. @throws StartupError */
function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new StartupError(`${file} cannot be read: ${error instanceof Error ? error.message : 'unknown error'}.`);
  }
}
