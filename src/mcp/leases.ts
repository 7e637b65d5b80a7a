/**
 * Every lease that this server took for its agent, so that none is forgotten when it stops. A value is fetched here and nowhere else.
 */
import { isEndedLease } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { Retrieved } from '../client/types.ts';
import type { CredentialPath } from '../core/path.ts';
import { ToolError } from './errors.ts';

/** A model in a loop must not fill memory, or hold the vault's whole list of leases. */
const MOST_LEASES = 500;
const AT_ONCE = 8;
const ASK_WITHIN_MS = 2000;

export class HeldLeases {
  readonly #client: Leasehold;
  /** When each ends, in ms since 1970, by the service's clock alone: this machine's may be hours off. */
  readonly #ends = new Map<string, number>();
  /** Asked for, and not yet answered. */
  #inFlight = 0;
  #asking: Promise<void> | null = null;

  constructor(client: Leasehold) {
    this.#client = client;
  }

  /**
   * WHY without a signal: an answer that nobody waits for would leave a lease that nobody ends.
   * @throws Refusal, LeaseholdError
   */
  async retrieve(path: CredentialPath, ttlSeconds?: number): Promise<Retrieved> {
    if (this.#isFull) {
      this.#asking ??= this.#forgetEnded().finally(() => {
        this.#asking = null;
      });
      await this.#asking;
    }
    // WHY again: others have waited for the same answer.
    if (this.#isFull) {
      throw new ToolError('BUSY', `this server holds ${MOST_LEASES} leases already; wait until some have ended`);
    }
    this.#inFlight++;
    try {
      const retrieved = await this.#client.credentials.retrieve(path, {
        ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
        // Each use has a lease of its own, which ends with it.
        useCache: false,
      });
      this.#ends.set(retrieved.lease_id, Date.parse(retrieved.expires_at));
      return retrieved;
    } finally {
      this.#inFlight--;
    }
  }

  /** Resolves to whether it has ended; one that the service did not end is tried again when the server stops. */
  async release(leaseId: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#client.leases.revoke(leaseId, { signal });
    } catch (error) {
      if (!isEndedLease(error)) return false;
    }
    this.#ends.delete(leaseId);
    return true;
  }

  /** Resolves to how many are left: their ends are in the service's hands. */
  async releaseAll(signal: AbortSignal): Promise<number> {
    const waiting = [...this.#ends.keys()];
    const work = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined && !signal.aborted; next = waiting.pop()) {
        await this.release(next, signal);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return this.#ends.size;
  }

  get #isFull(): boolean {
    return this.#ends.size + this.#inFlight >= MOST_LEASES;
  }

  /** Of those that end first, what the service says has ended. None is forgotten by a clock: it would be left behind. */
  async #forgetEnded(): Promise<void> {
    const first = [...this.#ends].sort(([, a], [, b]) => a - b).slice(0, AT_ONCE);
    const signal = AbortSignal.timeout(ASK_WITHIN_MS);
    await Promise.all(
      first.map(async ([leaseId]) => {
        try {
          const { status, expires_at } = await this.#client.leases.read(leaseId, { signal });
          if (status !== 'active') this.#ends.delete(leaseId);
          // It may have been renewed.
          else if (this.#ends.has(leaseId)) this.#ends.set(leaseId, Date.parse(expires_at));
        } catch (error) {
          if (isEndedLease(error)) this.#ends.delete(leaseId);
        }
      }),
    );
  }
}
