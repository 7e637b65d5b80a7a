/** Who asks: nobody, or somebody with a token that was given; agentcaller.ts has one that logs in. */
import { Secret } from '../core/secret.ts';

export interface Caller {
  /** What to send as Bearer; null for nobody. @throws LeaseholdError */
  token(signal: AbortSignal): Promise<string | null>;
  /** After a token was refused: whether there is another one now. @throws LeaseholdError */
  renew(refused: string | null, signal: AbortSignal): Promise<boolean>;
}

export const NOBODY: Caller = {
  token: () => Promise.resolve(null),
  renew: () => Promise.resolve(false),
};

export function tokenCaller(token: string | Secret): Caller {
  const secret = token instanceof Secret ? token : new Secret(token);
  return { token: () => Promise.resolve(secret.reveal()), renew: () => Promise.resolve(false) };
}
