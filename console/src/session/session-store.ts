/**
 * The session of this browser, and why the last one ended. Only the part of its token that is useless without the
 * cookie is stored. The part of an operator's session is stored for all tabs. The part of the administrator's token,
 * which does not end, is stored for this tab alone.
 */
import { browserCaller } from '../../../src/client/authentication.ts';
import type { AuthProvider } from '../../../src/client/transport.ts';

/** `checking`: a stored part exists, and the server has not yet confirmed that it is valid. */
export type SessionState =
  | { readonly kind: 'checking' }
  /** The part is kept, because the server may still confirm it. */
  | { readonly kind: 'unknown'; readonly error: unknown }
  | { readonly kind: 'signed-out'; readonly reason: string | null }
  | { readonly kind: 'signed-in'; readonly identity: SessionIdentity };

export interface SessionIdentity {
  readonly name: string;
  readonly roles: readonly string[];
  /** Whether the session belongs to the administrator's token, and not to an operator. */
  readonly isAdministrator: boolean;
  /** A time in ISO 8601; null if the session does not end. */
  readonly expiresAt: string | null;
  /** The end that renewals do not move; null if there is none. */
  readonly endsAt: string | null;
  /** The end of the session on the clock of `performance.now()`, independent of the browser's wall clock. */
  readonly expiryMs: number | null;
}

const PART_KEY = 'leasehold.session-part';
const ENDED_ELSEWHERE = 'You signed out in another tab.';

/** The stored part. The part of the administrator's token belongs to this tab alone. */
function storedPart(): string | null {
  return sessionStorage.getItem(PART_KEY) ?? localStorage.getItem(PART_KEY);
}

export class SessionStore {
  #state: SessionState;
  /** WHY not read from the storage for each call: another tab may have signed in another operator there. */
  #part = storedPart();
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.#state = this.#part === null ? { kind: 'signed-out', reason: null } : { kind: 'checking' };
  }

  readonly read = (): SessionState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Authenticates every call with the session of that moment. */
  readonly caller: AuthProvider = browserCaller(() => this.#part);

  storePart(part: string, isAdministrator: boolean): void {
    this.#removePart();
    (isAdministrator ? sessionStorage : localStorage).setItem(PART_KEY, part);
    this.#part = part;
  }

  /** Follows a sign-in or a sign-out in another tab. Returns whether a session has to be read. */
  adoptStored(): boolean {
    const stored = storedPart();
    if (stored === this.#part) return false;
    this.#part = stored;
    this.#set(stored === null ? { kind: 'signed-out', reason: ENDED_ELSEWHERE } : { kind: 'checking' });
    return stored !== null;
  }

  check(): void {
    this.#set({ kind: 'checking' });
  }

  /** Called if the server did not return the identity. */
  suspend(error: unknown): void {
    this.#set({ kind: 'unknown', error });
  }

  signIn(identity: SessionIdentity): void {
    this.#set({ kind: 'signed-in', identity });
  }

  /** `reason` is shown on the sign-in page. */
  signOut(reason: string | null): void {
    this.#removePart();
    this.#set({ kind: 'signed-out', reason });
  }

  #removePart(): void {
    for (const storage of [sessionStorage, localStorage]) storage.removeItem(PART_KEY);
    this.#part = null;
  }

  #set(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
