/**
 * Tracks every lease that this server acquires, so that all are released when it stops. Values are retrieved only here.
 */
import { isEndedLease } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { Retrieved } from '../client/types.ts';
import type { CredentialPath } from '../core/path.ts';
import { revokeAll } from '../run/leases.ts';
import { ToolError } from './errors.ts';

/** WHY bounded: a model in a loop must fill neither memory nor the vault's table of leases. */
const MAX_LEASES = 500;
const MAX_QUERIES = 8;
const QUERY_TIMEOUT_MS = 2000;

export class HeldLeases {
  readonly #client: Leasehold;
  /** Expiry by lease id, in ms since 1970 by the service's clock; this machine's clock may be hours off. */
  readonly #ends = new Map<string, number>();
  /** Requests for leases without a response yet. */
  #inFlight = 0;
  #pruning: Promise<void> | null = null;

  constructor(client: Leasehold) {
    this.#client = client;
  }

  /**
   * WHY without a signal: the lease of a cancelled request would never be released.
   * @throws ToolError, LeaseholdError
   */
  async retrieve(path: CredentialPath, ttlSeconds?: number): Promise<Retrieved> {
    if (this.#isFull) {
      this.#pruning ??= this.#pruneEnded().finally(() => {
        this.#pruning = null;
      });
      await this.#pruning;
    }
    // WHY again: other calls have waited for the same query.
    if (this.#isFull) {
      throw new ToolError('BUSY', `this server holds ${MAX_LEASES} leases already; wait until some have ended`);
    }
    this.#inFlight++;
    try {
      const retrieved = await this.#client.credentials.retrieve(path, {
        ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
        // Each use has a separate lease, which is released after it.
        useCache: false,
      });
      this.#ends.set(retrieved.lease_id, Date.parse(retrieved.expires_at));
      return retrieved;
    } finally {
      this.#inFlight--;
    }
  }

  /** Resolves to whether the lease has ended; otherwise it is tried again when the server stops. */
  async release(leaseId: string, signal: AbortSignal): Promise<boolean> {
    await this.#releaseEach([leaseId], signal);
    return !this.#ends.has(leaseId);
  }

  /** Resolves to the number of leases that could not be released; these expire. */
  async releaseAll(signal: AbortSignal): Promise<number> {
    await this.#releaseEach([...this.#ends.keys()], signal);
    return this.#ends.size;
  }

  async #releaseEach(leaseIds: readonly string[], signal: AbortSignal): Promise<void> {
    const failures = await revokeAll(this.#client.leases, leaseIds, signal);
    for (const leaseId of leaseIds) if (!failures.has(leaseId)) this.#ends.delete(leaseId);
  }

  get #isFull(): boolean {
    return this.#ends.size + this.#inFlight >= MAX_LEASES;
  }

  /**
   * Queries the leases that expire first, and drops the ended ones. WHY not by the clock: an active lease could be
   * lost.
   */
  async #pruneEnded(): Promise<void> {
    const first = [...this.#ends].sort(([, a], [, b]) => a - b).slice(0, MAX_QUERIES);
    const signal = AbortSignal.timeout(QUERY_TIMEOUT_MS);
    await Promise.all(
      first.map(async ([leaseId]) => {
        try {
          const { status, expires_at } = await this.#client.leases.read(leaseId, { signal });
          if (status !== 'active') this.#ends.delete(leaseId);
          // The lease may have been renewed.
          else if (this.#ends.has(leaseId)) this.#ends.set(leaseId, Date.parse(expires_at));
        } catch (error) {
          if (isEndedLease(error)) this.#ends.delete(leaseId);
        }
      }),
    );
  }
}
