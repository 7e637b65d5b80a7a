/**
 * What a service on this machine publishes in its data directory: its address, the administrator's token, and agents'
 * keys.
 * INVARIANT: when the address or token comes from a data directory, nothing is sent before the service proves that it
 * serves that directory. After a crash both files remain, and another program may listen on the port.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LeaseholdError } from '../../client/errors.ts';
import { Secret } from '../../core/secret.ts';
import { childPath } from '../../platform/child-path.ts';
import { dataDirPaths } from '../../platform/data-dir-paths.ts';
import type { OwnService } from './settings.ts';

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

/** Validity of a proof. A long command asks again, because the service may have stopped. */
const PROOF_VALID_MS = 1000;

/** Wraps `fetch` so that the service must prove itself first. */
export function fetchFromOwnService(own: OwnService, fetchFrom: typeof fetch): typeof fetch {
  let provenAt = Number.NEGATIVE_INFINITY;
  return async (input, init) => {
    if (performance.now() - provenAt > PROOF_VALID_MS) {
      await assertOwnService(own, fetchFrom, new URL(String(input)).origin, init?.signal ?? null);
      provenAt = performance.now();
    }
    try {
      return await fetchFrom(input, init);
    } catch (error) {
      provenAt = Number.NEGATIVE_INFINITY;
      throw error;
    }
  };
}

async function assertOwnService(
  { dataDir, address, challengeService }: OwnService,
  fetchFrom: typeof fetch,
  origin: string,
  signal: AbortSignal | null,
): Promise<void> {
  const challenge = await challengeService(dataDir, address);
  if (challenge === null) {
    throw new LeaseholdError(
      'UNREACHABLE',
      `no service runs on ${dataDir}, although its address file names ${address}; nothing was sent`,
    );
  }
  const response = await fetchFrom(`${origin}/api/v1/health`, {
    headers: { 'leasehold-proof-nonce': challenge.nonce },
    redirect: 'manual',
    credentials: 'omit',
    cache: 'no-store',
    signal,
  });
  response.body?.cancel().catch(() => undefined);
  if (challenge.isAnsweredBy(response.headers.get('leasehold-proof'))) return;
  throw new LeaseholdError(
    'INVALID_RESPONSE',
    `the server on ${address} is not the service of ${dataDir}; nothing was sent`,
  );
}
