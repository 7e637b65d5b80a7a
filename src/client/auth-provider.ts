/** Authentication of requests: anonymous, or with a given token. `agent-auth.ts` has the provider that logs in. */
import { Secret } from '../core/secret.ts';
import { badOption } from './errors.ts';

export interface AuthProvider {
  /** The bearer token of a request; null for an anonymous one. @throws LeaseholdError */
  token(signal: AbortSignal): Promise<string | null>;
  /** Reports a rejected token. Returns whether `token` may return another one now. */
  invalidate(rejected: string): boolean;
}

export const ANONYMOUS: AuthProvider = {
  token: () => Promise.resolve(null),
  invalidate: () => false,
};

/** Characters that a header accepts. WHY checked here: the runtime's own error message would quote the token. */
const VISIBLE = /^[\x21-\x7e]+$/;

/** @throws LeaseholdError BAD_OPTIONS */
export function tokenCaller(token: string | Secret): AuthProvider {
  const secret = token instanceof Secret ? token : new Secret(token);
  if (!VISIBLE.test(secret.reveal())) {
    throw badOption('token', 'must be visible ASCII characters, without spaces and line breaks');
  }
  return { token: () => Promise.resolve(secret.reveal()), invalidate: () => false };
}
