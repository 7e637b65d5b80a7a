/** The audit key for an auditor: derived from the root key alone; opens no value and needs no service. */

import { deriveKeys, exportAuditKey } from '../crypto/keys.ts';
import { layOut } from '../platform/data-dir-paths.ts';
import type { Configuration } from './configuration.ts';
import { readRootKey } from './root-key.ts';

/** Base64. @throws StartupError where the root key is missing or malformed; none is made. */
export function readAuditKey({ dataDir, rootKeyFile }: Configuration): string {
  const file = rootKeyFile ?? layOut(dataDir).rootKeyFile;
  return exportAuditKey(deriveKeys(readRootKey({ file, isDefaultFile: false, vaultExists: true }, () => undefined)));
}
