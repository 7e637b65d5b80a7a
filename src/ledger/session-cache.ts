/** Finds sessions: recently used ones in a cache, which the commit that ends a session corrects. */
import { LRUCache } from 'lru-cache';
import type { TokenHash } from '../core/names.ts';
import { subjectOf } from '../core/resources.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import type { Store } from '../store/port.ts';
import { readNewestState } from '../store/recorded-states.ts';
import { readSession } from '../store/vault-metadata.ts';
import type { Session } from '../vault/sessions/session.ts';
import { isAuthentic } from './authenticated-rows.ts';

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
    if (session.endsAt !== null) return;
    this.#sessions.set(session.tokenHash, session);
  }

  drop(tokenHash: TokenHash): void {
    this.#invalidations += 1;
    this.#sessions.delete(tokenHash);
  }
}

/** Reads a session from the store and adds it to the cache. Null if it does not exist or does not authenticate. */
export async function findSession(
  { sessions }: { readonly sessions: SessionCache },
  store: Store,
  keys: VaultKeys,
  tokenHash: TokenHash,
): Promise<Session | null> {
  // WHY twice: a renewal between the two reads replaces the row and its recorded state. There is one in a minute.
  for (let tries = 0; tries < 2; tries++) {
    const { invalidations } = sessions;
    const session = await store.run(readSession(tokenHash), 'urgent');
    if (session === null || !isAuthentic(keys.row, 'session', session)) return null;
    const recorded = await store.run(readNewestState(subjectOf('session', session)), 'urgent');
    if (recorded !== session.mac) continue;
    // The session may have ended since it was read.
    if (sessions.invalidations === invalidations) sessions.put(session);
    return session;
  }
  return null;
}
