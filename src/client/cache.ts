/**
 * Keeps values in memory until their leases expire. A repeated retrieval within a lease returns the same value and
 * lease, without a request and without an audit entry. A revocation by another client is noticed only when the lease
 * expires, so the cache is off by default.
 */
import { type Expiry, now } from './expiry.ts';
import type { Retrieved } from './types.ts';

/** A lease with less time left is not returned: it could expire before its value is used. */
const MIN_REMAINING_MS = 1000;

export class LeaseCache {
  readonly #maxSize: number;
  /** Cached values, the least recently used first. */
  readonly #cached = new Map<string, { readonly retrieved: Retrieved; readonly expiry: Expiry }>();
  #invalidations = 0;

  /** `maxSize`: number of values; 0 turns the cache off. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get isOn(): boolean {
    return this.#maxSize > 0;
  }

  /** Count of invalidations. A response to a request that started before the last one must not be cached. */
  get invalidations(): number {
    return this.#invalidations;
  }

  get(key: string): Retrieved | null {
    const cached = this.#cached.get(key);
    if (cached === undefined) return null;
    this.#cached.delete(key);
    if (!(cached.expiry.remainingMs(now()) > MIN_REMAINING_MS)) return null;
    this.#cached.set(key, cached);
    return cached.retrieved;
  }

  put(key: string, retrieved: Retrieved, expiry: Expiry): void {
    if (!this.isOn) return;
    this.#cached.delete(key);
    this.#cached.set(key, { retrieved, expiry });
    for (const oldest of this.#cached.keys()) {
      if (this.#cached.size <= this.#maxSize) return;
      this.#cached.delete(oldest);
    }
  }

  /** Awaits a change and then removes the affected entries, whether the change succeeded or not. */
  async invalidateAfter<T>(of: { readonly path?: string; readonly leaseId?: string }, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      this.forget(of);
    }
  }

  forget(of: { readonly path?: string; readonly leaseId?: string } = {}): void {
    this.#invalidations += 1;
    for (const [key, { retrieved }] of this.#cached) {
      const isAffected =
        (of.path === undefined || retrieved.path === of.path) &&
        (of.leaseId === undefined || retrieved.lease_id === of.leaseId);
      if (isAffected) this.#cached.delete(key);
    }
  }
}
