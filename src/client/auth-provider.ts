/** Who asks: nobody, or somebody with a token that was given; agentcaller.ts has one that logs in. */
import { Secret } from '../core/secret.ts';
import { badOption } from './errors.ts';

export interface AuthProvider {
  /** What to send as Bearer; null for nobody. @throws LeaseholdError */
  token(signal: AbortSignal): Promise<string | null>;
  /** Told that a token was refused: whether there may be another one now. */
  invalidate(refused: string): boolean;
}

export const ANONYMOUS: AuthProvider = {
  token: () => Promise.resolve(null),
  invalidate: () => false,
};

/** What a header can hold; whoever sends something else is told by a message with all of it. */
const VISIBLE = /^[\x21-\x7e]+$/;

/** @throws LeaseholdError BAD_OPTIONS */
export function tokenCaller(token: string | Secret): AuthProvider {
  const secret = token instanceof Secret ? token : new Secret(token);
  if (!VISIBLE.test(secret.reveal())) {
    throw badOption('token', 'must be letters, digits and signs, without blanks and line ends');
  }
  return { token: () => Promise.resolve(secret.reveal()), invalidate: () => false };
}
