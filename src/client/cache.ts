/**
 * Values in memory for as long as their leases last, and never longer: whoever asks again within a lease gets the same value and the
 * same lease, without a request and without an entry in the log. What was revoked meanwhile is seen when the lease is over, so that
 * whoever needs to know at once keeps it off, which is how it begins.
 */
import { type Expiry, now } from './expiry.ts';
import type { Retrieved } from './types.ts';

/** Near its end a lease is not worth a use: a value that is just about to end would be sent on. */
const WORTH_WITH_LEFT_MS = 1000;

interface Kept {
  readonly retrieved: Retrieved;
  readonly end: Expiry;
}

export class LeaseCache {
  readonly #most: number;
  /** In the order of use, the latest last. */
  readonly #kept = new Map<string, Kept>();
  #forgotten = 0;

  /** `most` values at a time; 0 keeps none. */
  constructor(most: number) {
    this.#most = most;
  }

  get isOn(): boolean {
    return this.#most > 0;
  }

  /** How often something was forgotten: what was asked before the last time may be what had to be forgotten. */
  get invalidations(): number {
    return this.#forgotten;
  }

  get(key: string): Retrieved | null {
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    this.#kept.delete(key);
    if (!(kept.end.remainingMs(now()) > WORTH_WITH_LEFT_MS)) return null;
    this.#kept.set(key, kept);
    return kept.retrieved;
  }

  put(key: string, retrieved: Retrieved, end: Expiry): void {
    if (!this.isOn) return;
    this.#kept.delete(key);
    this.#kept.set(key, { retrieved, end });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#most) return;
      this.#kept.delete(oldest);
    }
  }

  /** Does what ends or changes it, and forgets it then, however that ended. */
  async invalidateAfter<T>(of: { readonly path?: string; readonly leaseId?: string }, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      this.forget(of);
    }
  }

  /** What this client knows to be over, or no longer true: of a path, of a lease, or everything. */
  forget(of: { readonly path?: string; readonly leaseId?: string } = {}): void {
    this.#forgotten += 1;
    for (const [key, { retrieved }] of this.#kept) {
      const isMeant =
        (of.path === undefined || retrieved.path === of.path) &&
        (of.leaseId === undefined || retrieved.lease_id === of.leaseId);
      if (isMeant) this.#kept.delete(key);
    }
  }
}
