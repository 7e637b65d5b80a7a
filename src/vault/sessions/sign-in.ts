/**
 * Signs operators in to the console: with an identity at a provider of OpenID Connect, or with a one-time code that an
 * operator's session hands over to a browser. SOURCE: docs/operators.md, "Signing in".
 */

import { toApiError } from '../../core/denials.ts';
import type { Context } from '../../core/operation.ts';
import { decodeHandoff, decodeState, encodeHandoff, encodeState, stateSecrets } from '../../crypto/sign-in-codes.ts';
import { encodeChallengeId, hashToken, newToken } from '../../crypto/tokens.ts';
import type { Secret } from '../credentials/credential.ts';
import { checkedClaims } from '../operators/operator.ts';
import type { OidcClient } from '../ports.ts';
import type { Vault } from '../vault.ts';
import type { CurrentSession } from './session.ts';
import { readHandoffSession } from './session-operations.ts';
import {
  HANDOFF_LIFE_MS,
  OIDC_STATE_LIFE_MS,
  type Origin,
  signInByHandoff,
  signInByIdentity,
} from './sign-in-operations.ts';

/** Nothing is stored. @throws UNAVAILABLE */
export async function requestIdentity(
  { keys, clock }: Vault,
  oidc: OidcClient,
  redirectUri: string,
): Promise<{ readonly url: string; readonly state: string }> {
  const id = encodeChallengeId(keys.challenge, clock.now(), false);
  const state = encodeState(keys.challenge, id, redirectUri);
  const url = await oidc.authorizationUrl({ redirectUri, state, ...stateSecrets(keys.challenge, id) });
  return { url, state };
}

/** @throws AUTH_FAILED, RATE_LIMITED, UNAVAILABLE */
export async function signInWithIdentity(
  { keys, clock, ledger, loginThrottle, budgets }: Vault,
  oidc: OidcClient,
  origin: Origin,
  redirectUri: string,
  { code, state }: { readonly code: string; readonly state: string },
): Promise<CurrentSession & { token: Secret }> {
  const issued = decodeState(keys.challenge, state, redirectUri);
  // A forged state costs no request to the provider.
  if (issued === null || clock.now() >= issued.issuedAt + OIDC_STATE_LIFE_MS)
    throw toApiError({ code: 'sign_in_failed' });
  const attempt = async (): Promise<CurrentSession & { token: Secret }> => {
    const vouched = await oidc.redeem({ redirectUri, state, ...stateSecrets(keys.challenge, issued.id) }, code);
    const claims = vouched === null ? null : checkedClaims(vouched);
    const token = newToken('lhs_');
    const request = {
      claims,
      challengeId: issued.id,
      expiresAt: issued.issuedAt + OIDC_STATE_LIFE_MS,
      tokenHash: hashToken(token.reveal()),
    };
    await ledger.refresh();
    const operator = claims === null ? null : ledger.memory.control.operatorByIdentity(claims);
    const submit = () => ledger.submit(signInByIdentity(origin, request));
    const session = operator === null ? submit() : budgets.sessions.charge(operator.name, 1, clock.now(), submit);
    return { ...(await session), token };
  };
  return loginThrottle.runAtProvider(origin.remoteAddr, clock, attempt);
}

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
  const { agentName } = await ledger.read(readHandoffSession(context, isBrowser));
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
  if (issued === null) throw toApiError({ code: 'sign_in_failed' });
  return loginThrottle.run(null, origin.remoteAddr, clock, async () => {
    const expiresAt = issued.issuedAt + HANDOFF_LIFE_MS;
    if (clock.now() >= expiresAt) throw toApiError({ code: 'sign_in_failed' });
    const token = newToken('lhs_');
    const attempt = { challengeId: issued.id, expiresAt, tokenHash: hashToken(token.reveal()) };
    return { ...(await ledger.submit(signInByHandoff(origin, { ...attempt, parent: issued.tokenHash }))), token };
  });
}
