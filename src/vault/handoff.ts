/** Hands an operator's session over to a browser: a one-time code opens another session there. */

import type { Secret } from '../core/credential.ts';
import type { Context } from '../core/operation.ts';
import { type CurrentSession, readHandoffSession } from '../core/operations/sessions.ts';
import { HANDOFF_LIFE_MS, type Origin, signInByHandoff, signInFailed } from '../core/operations/sign-in.ts';
import { decodeHandoff, encodeHandoff } from '../crypto/sign-in-codes.ts';
import { encodeChallengeId, hashToken, newToken } from '../crypto/tokens.ts';
import type { Vault } from './vault.ts';

/**
 * Nothing is stored. The code is charged as the session that it opens, because the operator is known here.
 * @throws ACCESS_DENIED for a caller that is not an operator, or is a browser; RATE_LIMITED
 */
export async function issueHandoff(
  { keys, clock, ledger, budgets }: Vault,
  context: Context,
  token: string,
  isBrowser: boolean,
): Promise<{ readonly code: string; readonly expiresAt: number }> {
  const { agentName } = await ledger.submit(readHandoffSession(context, isBrowser));
  const now = clock.now();
  await budgets.sessions.charge(agentName, 1, now, async () => undefined);
  const id = encodeChallengeId(keys.challenge, now, false);
  return { code: encodeHandoff(keys.challenge, id, hashToken(token)), expiresAt: now + HANDOFF_LIFE_MS };
}

/** @throws AUTH_FAILED, RATE_LIMITED */
export async function redeemHandoff(
  { keys, clock, ledger, loginThrottle }: Vault,
  origin: Origin,
  code: string,
): Promise<CurrentSession & { token: Secret }> {
  const issued = decodeHandoff(keys.challenge, code);
  // A forged code costs no batch.
  if (issued === null) throw signInFailed();
  return loginThrottle.run(null, origin.remoteAddr, clock, async () => {
    const expiresAt = issued.issuedAt + HANDOFF_LIFE_MS;
    if (clock.now() >= expiresAt) throw signInFailed();
    const token = newToken('lhs_');
    const attempt = { challengeId: issued.id, expiresAt, tokenHash: hashToken(token.reveal()) };
    return { ...(await ledger.submit(signInByHandoff(origin, { ...attempt, parent: issued.tokenHash }))), token };
  });
}
