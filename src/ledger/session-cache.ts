/**
 * Caches recently used sessions, so that a batch need not load them. The commit that ends a session removes it here.
 */
import type { Session } from '../core/agent.ts';
import { FifoCache } from '../core/fifo-cache.ts';
import type { TokenHash } from '../core/names.ts';

const MAX_SESSIONS = 10_000;

export class SessionCache {
  readonly #sessions = new FifoCache<TokenHash, Session>();

  #invalidations = 0;

  /** The number of sessions dropped so far. A read of the store that began before the last drop may be stale. */
  get invalidations(): number {
    return this.#invalidations;
  }

  get(tokenHash: TokenHash): Session | null {
    return this.#sessions.get(tokenHash) ?? null;
  }

  put(session: Session): void {
    this.#sessions.put(session.tokenHash, session);
    // Sessions are not extended by use, so the oldest one ends first.
    if (this.#sessions.size > MAX_SESSIONS) this.#sessions.evictOldest();
  }

  drop(tokenHash: TokenHash): void {
    this.#invalidations += 1;
    this.#sessions.delete(tokenHash);
  }
}
