/** Signs operators in with an identity at a provider of OpenID Connect. SOURCE: docs/operators.md, "Signing in". */

import type { Secret } from '../core/credential.ts';
import type { CurrentSession } from '../core/operations/sessions.ts';
import { OIDC_STATE_LIFE_MS, type Origin, signInByIdentity, signInFailed } from '../core/operations/sign-in.ts';
import { decodeState, encodeState, stateSecrets } from '../crypto/sign-in-codes.ts';
import { encodeChallengeId, hashToken, newToken } from '../crypto/tokens.ts';
import type { OidcClient } from './oidc-client.ts';
import type { Vault } from './vault.ts';

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
  if (issued === null || clock.now() >= issued.issuedAt + OIDC_STATE_LIFE_MS) throw signInFailed();
  const attempt = async (): Promise<CurrentSession & { token: Secret }> => {
    const claims = await oidc.redeem({ redirectUri, state, ...stateSecrets(keys.challenge, issued.id) }, code);
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
  // WHY UNAVAILABLE too: each attempt costs a request to the provider, which may have failed because of the code.
  return loginThrottle.run(null, origin.remoteAddr, clock, attempt, ['AUTH_FAILED', 'UNAVAILABLE']);
}
