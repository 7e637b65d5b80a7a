/**
 * INVARIANT: a service whose address or token came out of a data directory receives nothing before it has proved that it runs on that
 * directory. After a crash both files remain, and another program may listen on the port.
 */
import { LeaseholdError } from '../client/errors.ts';
import type { OwnService } from './settings/settings.ts';

/** How long a proof counts: a long command asks again, because the service may have ended meanwhile. */
const PROOF_VALID_MS = 1000;

/** `fetch` that asks the service for its proof first. */
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
    throw new LeaseholdError('UNREACHABLE', `no service runs on ${dataDir}, which names ${address}; nothing was sent`);
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
    `what listens on ${address} is not the service of ${dataDir}; nothing was sent`,
  );
}
