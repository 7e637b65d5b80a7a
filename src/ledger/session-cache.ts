/**
 * Caches recently used sessions, so that a batch need not load them. The commit that ends a session removes it here.
 */
import { LRUCache } from 'lru-cache';
import type { Session } from '../core/agent.ts';
import type { TokenHash } from '../core/names.ts';

export class SessionCache {
  /** WHY `maxSize` without `max`: see token-buckets.ts. */
  readonly #sessions = new LRUCache<TokenHash, Session>({ maxSize: 10_000, sizeCalculation: () => 1 });
  #invalidations = 0;

  /** The number of sessions dropped so far. A read of the store that began before the last drop may be stale. */
  get invalidations(): number {
    return this.#invalidations;
  }

  get(tokenHash: TokenHash): Session | null {
    return this.#sessions.get(tokenHash) ?? null;
  }

  /** WHY not an operator's: another node may have renewed it. */
  put(session: Session): void {
    if (session.endsAt != null) return;
    this.#sessions.set(session.tokenHash, session);
  }

  drop(tokenHash: TokenHash): void {
    this.#invalidations += 1;
    this.#sessions.delete(tokenHash);
  }
}
