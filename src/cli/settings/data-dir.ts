/**
 * Reads what a server on this machine publishes in its data directory: its address, the administrator's token, and
 * agents' keys. `connection-proof.ts` makes sure that they are used with that server only.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../core/secret.ts';
import { childPath } from '../../platform/child-path.ts';
import { dataDirPaths } from '../../platform/data-dir-paths.ts';

function readLine(file: string): string | null {
  try {
    return readFileSync(file, 'latin1').trim() || null;
  } catch {
    // The file is missing or not readable.
    return null;
  }
}

export function readServiceAddress(dataDir: string): string | null {
  return readLine(dataDirPaths(dataDir).addressFile);
}

export function readAdminToken(dataDir: string): Secret | null {
  const token = readLine(dataDirPaths(dataDir).tokenFile);
  return token === null ? null : new Secret(token);
}

/** The key file of an agent whose key pair the service made. */
export function keyFileIn(dataDir: string, agent: string): string {
  return join(childPath(dataDirPaths(dataDir).agentsDir, agent), 'private_key.pem');
}
