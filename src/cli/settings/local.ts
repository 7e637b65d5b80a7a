/** What a service on this machine left in its data directory for who may read it: where it listens, and the administrator's token. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../core/secret.ts';
import { dataDirPaths } from '../../platform/data-dir-paths.ts';

function readLine(file: string): string | null {
  try {
    return readFileSync(file, 'latin1').trim() || null;
  } catch {
    // It is not there, or it is not for us.
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

/** Where the service keeps the key of an agent that it made the pair of. */
export function keyFileIn(dataDir: string, agent: string): string {
  return join(dataDirPaths(dataDir).agentsDir, agent, 'private_key.pem');
}
