/** Sessions seen lately, so that a turn need not load them. A session that ends is dropped with the commit that ends it. */
import type { Session } from '../core/agent.ts';
import { FifoCache } from '../core/fifo-cache.ts';
import type { TokenHash } from '../core/names.ts';

const MAX_SESSIONS = 10_000;

export class SessionCache {
  readonly #sessions = new FifoCache<TokenHash, Session>();

  #drops = 0;

  /** How many were dropped so far: a look at the store that began before the last one may be out of date. */
  get invalidations(): number {
    return this.#drops;
  }

  get(tokenHash: TokenHash): Session | null {
    return this.#sessions.get(tokenHash) ?? null;
  }

  put(session: Session): void {
    this.#sessions.put(session.tokenHash, session);
    // The one that was put first: sessions are not extended by use, so that it is the nearest to its end.
    if (this.#sessions.size > MAX_SESSIONS) this.#sessions.evictOldest();
  }

  drop(tokenHash: TokenHash): void {
    this.#drops += 1;
    this.#sessions.delete(tokenHash);
  }
}
