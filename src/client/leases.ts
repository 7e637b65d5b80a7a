/** Calls on leases. SOURCE: docs/decisions.md, "Leases". */

import { type ApiClient, type CallOptions, Calls, type ListAllOptions, toSegment } from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import type { Lease, LeasesFilter, Page, Revoked, RevokeRequest } from './types.ts';

const LEASES = '/api/v1/leases';
/** @throws LeaseholdError INVALID_REQUEST */
export const leaseAddress = (leaseId: string): string => `${LEASES}/${toSegment(leaseId, 'lease_id')}`;

export class Leases extends Calls {
  readonly #cache: LeaseCache;

  constructor(api: ApiClient, cache: LeaseCache) {
    super(api);
    this.#cache = cache;
  }

  list(filter: LeasesFilter = {}, options: CallOptions = {}): Promise<Page<Lease>> {
    return this.api.page(LEASES, filter, options);
  }

  listAll(filter: Omit<LeasesFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.api.pages<Lease>(LEASES, filter, options);
  }

  async read(leaseId: string, options: CallOptions = {}): Promise<Lease> {
    return this.api.read(leaseAddress(leaseId), {}, options);
  }

  /**
   * Decides again by the current policies. The new expiry may be earlier than the previous one. @throws LeaseholdError
   * LEASE_ENDED, ACCESS_DENIED
   */
  async renew(leaseId: string, options: CallOptions = {}): Promise<Lease> {
    const renewing = this.api.post<Lease>(`${leaseAddress(leaseId)}/renew`, {}, options);
    return this.#cache.invalidateAfter({ leaseId }, renewing);
  }

  async revoke(leaseId: string, options: CallOptions = {}): Promise<void> {
    await this.#cache.invalidateAfter({ leaseId }, this.api.remove(leaseAddress(leaseId), options, 'id'));
  }

  /** Revokes all active leases of an agent, of a path, or of both. */
  async revokeAll(body: RevokeRequest, options: CallOptions = {}): Promise<Revoked> {
    const affected = body.path === undefined ? {} : { path: body.path };
    return this.#cache.invalidateAfter(affected, this.api.post<Revoked>(`${LEASES}/revoke`, body, options));
  }
}
