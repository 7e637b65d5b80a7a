/**
 * The project's client with the session of this browser. Calls that the client lacks use `api`, with the same
 * authentication, timeouts and retries.
 */
import { useSyncExternalStore } from 'react';
import { ApiClient } from '../../../src/client/api-client.ts';
import { browserCaller, tokenCaller } from '../../../src/client/authentication.ts';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { Leasehold } from '../../../src/client/leasehold.ts';
import { SignIn } from '../../../src/client/sign-in.ts';
import { Transport } from '../../../src/client/transport.ts';
import type { BrowserSession } from '../../../src/client/types.ts';
import type { Role } from '../../../src/vault/operators/operator.ts';
import { timedFetch } from './server-clock.ts';
import { type SessionIdentity, type SessionState, SessionStore } from './session-store.ts';

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const MIN_RENEWAL_INTERVAL_MS = 60_000;
const ADMINISTRATOR: SessionIdentity = {
  name: 'admin',
  roles: ['admin'],
  isAdministrator: true,
  expiresAt: null,
  endsAt: null,
  expiryMs: null,
};
const ENDED = 'Your session has ended. Sign in again to continue where you were.';

const base = location.origin;
const transport = new Transport({
  base,
  fetch: timedFetch,
  timeoutMs: TIMEOUT_MS,
  retries: RETRIES,
  approvalRetries: 0,
  onApprovalPending: undefined,
});

/** The time of the last automatic renewal, on the clock of `performance.now()`. */
let renewedAt = Number.NEGATIVE_INFINITY;

export const session = new SessionStore();
export const client = new Leasehold({
  address: base,
  caller: session.caller,
  timeoutMs: TIMEOUT_MS,
  retries: RETRIES,
  insecureHttp: true,
  fetch: timedFetch,
});
export const api = new ApiClient(transport, session.caller);
/** Calls without a session, whose response sets the cookie of a session. */
export const signInCalls = new SignIn(
  new ApiClient(
    transport,
    browserCaller(() => null),
  ),
);

/** Reads the signed-in identity. @throws LeaseholdError 401 for an invalid session */
async function readIdentity(): Promise<SessionIdentity> {
  try {
    const sentAt = performance.now();
    const { agent_name, roles, expires_at, ends_at, expires_in } = await client.readSession();
    return {
      name: agent_name.replace(/^operator:/, ''),
      roles: roles ?? [],
      isAdministrator: false,
      expiresAt: expires_at,
      endsAt: ends_at ?? null,
      expiryMs: sentAt + expires_in * 1000,
    };
  } catch (error) {
    // The administrator's token has no session.
    if (error instanceof LeaseholdError && (error.status === 403 || error.status === 404)) return ADMINISTRATOR;
    throw error;
  }
}

/** Checks whether the stored part of a session is still valid. */
export async function resumeSession(): Promise<void> {
  if (session.read().kind !== 'checking') return;
  try {
    session.signIn(await readIdentity());
  } catch (error) {
    if (!isRejected(error)) session.suspend(error);
    else if (session.adoptStored()) await resumeSession();
    else session.signOut(ENDED);
  }
}

/** Follows another tab that signs in or out, which also replaces the cookie of this tab. */
export function followOtherTabs(): void {
  addEventListener('storage', () => {
    if (session.adoptStored()) void resumeSession();
  });
}

/** Reads the signed-in identity again, after the server did not respond. */
export async function retrySession(): Promise<void> {
  session.check();
  await resumeSession();
}

const isRejected = (error: unknown): boolean => error instanceof LeaseholdError && error.status === 401;

/** Exchanges the token for a session of this browser. The page does not keep the token. @throws LeaseholdError */
export async function signInWithToken(text: string): Promise<void> {
  const calls = new SignIn(new ApiClient(transport, tokenCaller(text.trim())));
  await openBrowserSession(await calls.openBrowser());
}

/** @throws LeaseholdError */
export async function openBrowserSession({ session_part, expires_at }: BrowserSession): Promise<void> {
  // Only the administrator's token never expires.
  session.storePart(session_part, expires_at === null);
  session.signIn(await readIdentity());
}

/** Extends the session; the state then contains the new end. */
export async function renewSession(): Promise<void> {
  await client.renewSession();
  session.signIn(await readIdentity());
}

/** Renews the session, at most once a minute, whatever its times are. The server has the same limit. */
export async function renewWhileActive(): Promise<void> {
  const now = performance.now();
  if (now - renewedAt < MIN_RENEWAL_INTERVAL_MS) return;
  renewedAt = now;
  await renewSession();
}

/** Signs out. The administrator's token has no session to end, but a cookie in this browser. */
export async function signOut(reason: string | null = null): Promise<void> {
  try {
    if (session.read().kind === 'signed-in') await client.logOut();
  } finally {
    session.signOut(reason);
  }
}

/** Handles every failed call. A rejected session ends, and the sign-in page returns to the same URL. */
export function noticeError(error: unknown): void {
  if (!isRejected(error) || session.read().kind !== 'signed-in') return;
  if (session.adoptStored()) void resumeSession();
  else if (session.read().kind === 'signed-in') session.signOut(ENDED);
}

export function useSession(): SessionState {
  return useSyncExternalStore(session.subscribe, session.read);
}

/** Whether the operator has the role; an administrator has all of them. The server enforces roles in any case. */
export function useRole(role: Role): boolean {
  const state = useSession();
  if (state.kind !== 'signed-in') return false;
  const { roles } = state.identity;
  return roles.includes('admin') || roles.includes(role);
}
