/** The one place where this server asks the service to make a request with a credential. */
import type { Leasehold } from '../client/leasehold.ts';
import type { UseRequest, UseResponse } from '../client/types.ts';

/** @throws LeaseholdError, the signal's reason */
export function callUse(client: Leasehold, request: UseRequest, signal: AbortSignal): Promise<UseResponse> {
  return client.use(request, { signal });
}
