/** Calls on leases. SOURCE: decisions, "Leases". */
import type { LeaseCache } from './cache.ts';
import type { CallOptions, Connection } from './connection.ts';
import type { Lease, LeasesFilter, Page, Revoked, RevokeRequest } from './types.ts';

const LEASES = '/api/v1/leases';
const addressOf = (leaseId: string): string => `${LEASES}/${encodeURIComponent(leaseId)}`;

export class Leases {
  readonly #connection: Connection;
  readonly #cache: LeaseCache;

  constructor(connection: Connection, cache: LeaseCache) {
    this.#connection = connection;
    this.#cache = cache;
  }

  list(filter: LeasesFilter = {}, options: CallOptions = {}): Promise<Page<Lease>> {
    return this.#connection.page(LEASES, filter, options);
  }

  listAll(filter: Omit<LeasesFilter, 'limit' | 'offset'> = {}, options: CallOptions = {}) {
    return this.#connection.pages<Lease>(LEASES, filter, options);
  }

  read(leaseId: string, options: CallOptions = {}): Promise<Lease> {
    return this.#connection.read(addressOf(leaseId), {}, options);
  }

  /** Decided anew, from now. @throws LeaseholdError LEASE_ENDED, ACCESS_DENIED */
  async renew(leaseId: string, { signal }: CallOptions = {}): Promise<Lease> {
    const wanted = {
      method: 'POST',
      path: `${addressOf(leaseId)}/renew`,
      body: {},
      repeats: 'by key',
      signal,
    } as const;
    return (await this.#connection.ask<Lease>(wanted)).data;
  }

  async revoke(leaseId: string, options: CallOptions = {}): Promise<void> {
    this.#cache.forget({ leaseId });
    await this.#connection.remove(addressOf(leaseId), options);
  }

  /** All active ones of an agent, of a path, or of both. */
  async revokeAll(body: RevokeRequest, { signal }: CallOptions = {}): Promise<Revoked> {
    this.#cache.forget(body.path === undefined ? {} : { path: body.path });
    const wanted = { method: 'POST', path: `${LEASES}/revoke`, body, repeats: 'by key', signal } as const;
    return (await this.#connection.ask<Revoked>(wanted)).data;
  }
}
