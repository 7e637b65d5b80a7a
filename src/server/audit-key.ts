/** Derives the audit key from the root key, for an auditor. It cannot decrypt values. No service needs to run. */

import { deriveKeys, exportAuditKey } from '../crypto/keys.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import type { Configuration } from './configuration.ts';
import { readRootKey } from './root-key.ts';

/** Base64. Creates no root key. @throws StartupError if it is missing or malformed */
export function readAuditKey({ dataDir, rootKeyFile }: Configuration): string {
  const file = rootKeyFile ?? dataDirPaths(dataDir).rootKeyFile;
  return exportAuditKey(deriveKeys(readRootKey({ file, isDefaultFile: false, vaultExists: true }, () => undefined)));
}
