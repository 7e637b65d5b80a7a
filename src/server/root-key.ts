/** The root key file. Created only for a new vault; a missing or wrong key of an existing vault prevents the start. */

import { readFileSync } from 'node:fs';
import { deriveKeys, exportAuditKey, parseRootKey } from '../crypto/keys.ts';
import { newRootKey } from '../crypto/random.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { checkPrivateFile, warnIfReadableByOthers, writePrivateFile } from '../platform/private-files.ts';
import type { Configuration } from './configuration.ts';

export interface RootKeyFile {
  readonly file: string;
  /** Whether it is the file of the data directory, which is made private; for another file there is only a warning. */
  readonly isDefaultFile: boolean;
  /** Whether the vault already exists. */
  readonly vaultExists: boolean;
}

/** Reads the file once, because it may be a pipe. @throws StartupError */
export function readRootKey(
  { file, isDefaultFile, vaultExists }: RootKeyFile,
  warn: (line: string) => void,
): Uint8Array {
  if (isDefaultFile) checkPrivateFile(file);
  const text = readIfExists(file);
  if (text === null) {
    if (vaultExists) {
      throw new StartupError(
        `The root key is missing: ${file}. The vault cannot be opened without it. Restore it from your backup.`,
      );
    }
    const rootKey = newRootKey();
    writePrivateFile(file, `${Buffer.from(rootKey).toString('base64')}\n`);
    return rootKey;
  }
  if (!isDefaultFile) warnIfReadableByOthers(file, warn);
  const rootKey = parseRootKey(text);
  if (rootKey === null)
    throw new StartupError(`${file} is not a root key: it must contain 32 bytes as base64, on one line.`);
  return rootKey;
}

/** Null if the file does not exist. @throws StartupError */
function readIfExists(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new StartupError(`${file} cannot be read: ${error instanceof Error ? error.message : 'unknown error'}.`);
  }
}

/**
 * The key with which an auditor verifies the log, as base64; it cannot decrypt values. Creates no root key. @throws
 * StartupError if it is missing or malformed
 */
export function readAuditKey({ dataDir, rootKeyFile }: Pick<Configuration, 'dataDir' | 'rootKeyFile'>): string {
  const file = rootKeyFile ?? dataDirPaths(dataDir).rootKeyFile;
  return exportAuditKey(deriveKeys(readRootKey({ file, isDefaultFile: false, vaultExists: true }, () => undefined)));
}

/** The error for a root key that is not the vault's. */
export function wrongRootKey(file: string): StartupError {
  return new StartupError(`${file} is not the root key of this vault. Nothing was changed. Put the right key back.`);
}
