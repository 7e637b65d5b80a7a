/** The root key file. It is created only for a new vault; a wrong key of an existing vault prevents startup. */

import { newRootKey } from '../crypto/primitives.ts';
import { parseRootKey } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import {
  checkPrivateFile,
  readSecretBytes,
  warnIfReadableByOthers,
  writePrivateFile,
} from '../platform/private-files.ts';
import type { Configuration } from './configuration.ts';

/** The root key file, and its content: the secret of the slot `file`. */
export interface RootKeyFile {
  readonly path: string;
  /** Null if the file does not exist, or cannot be used. */
  readonly secret: Uint8Array | null;
  /** Why the file cannot be used, in one sentence. Another slot may still open the vault. */
  readonly problem?: string;
}

/**
 * Reads the file once, because it may be a pipe. The default file is made private; another file only causes a warning.
 * @throws StartupError if it cannot be used for a new vault
 */
export function readRootKey(
  configuration: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  mayCreate: boolean,
  warn: (line: string) => void,
): RootKeyFile {
  try {
    return read(configuration, mayCreate, warn);
  } catch (error) {
    if (mayCreate) throw error;
    const path = configuration.rootKeyFile ?? dataDirPaths(configuration.dataDir).rootKeyFile;
    const problem = error instanceof StartupError ? error.message : `${path} cannot be used${errnoSuffix(error)}.`;
    return { path, secret: null, problem };
  }
}

/** @throws StartupError */
function read(
  { dataDir, rootKeyFile }: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  mayCreate: boolean,
  warn: (line: string) => void,
): RootKeyFile {
  const path = rootKeyFile ?? dataDirPaths(dataDir).rootKeyFile;
  if (rootKeyFile === null) checkPrivateFile(path);
  const text = readIfExists(path);
  if (text === null) return { path, secret: mayCreate ? createRootKey(path) : null };
  if (rootKeyFile !== null) warnIfReadableByOthers(path, warn);
  const secret = parseRootKey(text);
  if (secret !== null) return { path, secret };
  throw new StartupError(`${path} is not a root key: it must contain 32 bytes as base64, on one line.`);
}

function createRootKey(path: string): Uint8Array {
  const secret = newRootKey();
  writePrivateFile(path, `${Buffer.from(secret).toString('base64')}\n`);
  return secret;
}

/** Null if the file does not exist. @throws StartupError */
function readIfExists(file: string): string | null {
  try {
    return readSecretBytes(file).toString('latin1');
  } catch (error) {
    const { cause } = error instanceof StartupError ? error : {};
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return null;
    throw error;
  }
}

export function wrongRootKey(file: string): StartupError {
  return new StartupError(`${file} is not the root key of this vault. Nothing was changed. Put the right key back.`);
}

export function rootKeyMissing(file: string): string {
  return `The root key is missing: ${file}. The vault cannot be opened without it. Restore it from your backup.`;
}
