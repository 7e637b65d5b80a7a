/** The session, for components. */
import { useSyncExternalStore } from 'react';
import { session } from './console-client.ts';
import type { SessionState } from './session-store.ts';

export function useSession(): SessionState {
  return useSyncExternalStore(session.subscribe, session.read);
}

/**
 * Whether the operator has one of the roles; an administrator has all of them. The server enforces roles in any case.
 */
export function useRole(...wanted: readonly string[]): boolean {
  const state = useSession();
  if (state.kind !== 'signed-in') return false;
  const { roles } = state.person;
  return roles.includes('admin') || wanted.some((role) => roles.includes(role));
}
