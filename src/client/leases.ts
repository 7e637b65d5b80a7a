/** Calls on leases. SOURCE: decisions, "Leases". */

import type { ApiClient, CallOptions, ListAllOptions } from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import { holdLease, holdRevoked } from './decoders.ts';
import type { Lease, LeasesFilter, Page, Revoked, RevokeRequest } from './types.ts';
import { toSegment } from './url-path.ts';

const LEASES = '/api/v1/leases';
/** @throws LeaseholdError INVALID_REQUEST */
export const leaseAddress = (leaseId: string): string => `${LEASES}/${toSegment(leaseId, 'lease_id')}`;

export class Leases {
  readonly #connection: ApiClient;
  readonly #cache: LeaseCache;

  constructor(connection: ApiClient, cache: LeaseCache) {
    this.#connection = connection;
    this.#cache = cache;
  }

  list(filter: LeasesFilter = {}, options: CallOptions = {}): Promise<Page<Lease>> {
    return this.#connection.page(LEASES, filter, holdLease, options);
  }

  listAll(filter: Omit<LeasesFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.#connection.pages(LEASES, filter, holdLease, options);
  }

  async read(leaseId: string, options: CallOptions = {}): Promise<Lease> {
    return this.#connection.read(leaseAddress(leaseId), {}, holdLease, options);
  }

  /** Decided anew, from now; it may end earlier than before. @throws LeaseholdError LEASE_ENDED, ACCESS_DENIED */
  async renew(leaseId: string, { signal }: CallOptions = {}): Promise<Lease> {
    const path = `${leaseAddress(leaseId)}/renew`;
    const wanted = { method: 'POST', path, body: {}, repeats: 'by key', signal } as const;
    return (await this.#cache.invalidateAfter({ leaseId }, this.#connection.ask(wanted, holdLease))).data;
  }

  async revoke(leaseId: string, options: CallOptions = {}): Promise<void> {
    await this.#cache.invalidateAfter({ leaseId }, this.#connection.remove(leaseAddress(leaseId), options, 'id'));
  }

  /** All active ones of an agent, of a path, or of both. */
  async revokeAll(body: RevokeRequest, { signal }: CallOptions = {}): Promise<Revoked> {
    const wanted = { method: 'POST', path: `${LEASES}/revoke`, body, repeats: 'by key', signal } as const;
    const meant = body.path === undefined ? {} : { path: body.path };
    return (await this.#cache.invalidateAfter(meant, this.#connection.ask(wanted, holdRevoked))).data;
  }
}
