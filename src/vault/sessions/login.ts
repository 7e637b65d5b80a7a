/** Challenges and logins. SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents and sessions". */

import { toApiError } from '../../core/denials.ts';
import type { PrincipalName, PublicKey } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { DUMMY_PUBLIC_KEY, isSignatureValid } from '../../crypto/signatures.ts';
import {
  type DecodedChallenge,
  decodeChallengeId,
  deriveNonce,
  encodeChallengeId,
  hashToken,
  newToken,
} from '../../crypto/tokens.ts';
import type { DraftOf, ShownOf } from '../../engine/resource.ts';
import type { Secret } from '../credentials/credential.ts';
import type { Vault } from '../vault.ts';
import type { Challenge, CurrentSession, VerifyRequest } from './session.ts';
import { CHALLENGE_LIFE_MS, openSession } from './session-operations.ts';

export interface IssuedChallenge extends Pick<ShownOf<typeof Challenge.fields>, 'challengeId' | 'expiresAt'> {
  /** 32 bytes, to be signed. */
  readonly nonce: Buffer;
}

export interface SignedChallenge extends Omit<DraftOf<typeof VerifyRequest.fields>, 'signature'> {
  readonly signature: Uint8Array;
}

/** An unknown agent receives a challenge of the same form. Nothing is stored. @throws StoreError, UNAVAILABLE */
export async function issueChallenge(vault: Vault, agentName: PrincipalName): Promise<IssuedChallenge> {
  const { keys, clock, ledger } = vault;
  await ledger.refresh();
  const agent = ledger.memory.control.principalByName(agentName);
  const issuedAt = clock.now();
  const challengeId = encodeChallengeId(keys.challenge, issuedAt, agent !== null);
  const nonce = deriveNonce(keys.challenge, challengeId, nonceSubject(agent, agentName));
  return { challengeId, nonce, expiresAt: issuedAt + CHALLENGE_LIFE_MS };
}

/**
 * Opens a session for a signed challenge. All failures return the same error. For every challenge issued by this
 * server they also do the same work: a signature is checked, and the challenge is consumed.
 * @throws AUTH_FAILED, RATE_LIMITED
 */
export async function login(
  vault: Vault,
  origin: Pick<Context, 'requestId' | 'remoteAddr'>,
  signed: SignedChallenge,
): Promise<CurrentSession & { token: Secret }> {
  const { clock, keys, loginThrottle } = vault;
  const { agentName } = signed;
  const challenge = decodeChallengeId(keys.challenge, signed.challengeId);
  // A forged id is not charged: it costs no signature check, and must not use up the attempts of an address.
  if (challenge === null) throw toApiError({ code: 'login_failed' });
  const verify = () => verifyChallenge(vault, origin, signed, challenge);
  return loginThrottle.run(agentName, origin.remoteAddr, clock, verify);
}

async function verifyChallenge(
  { keys, ledger, budgets, clock }: Vault,
  origin: Pick<Context, 'requestId' | 'remoteAddr'>,
  { challengeId, agentName, signature }: SignedChallenge,
  challenge: DecodedChallenge,
): Promise<CurrentSession & { token: Secret }> {
  await ledger.refresh();
  const agent = ledger.memory.control.principalByName(agentName);
  const nonce = deriveNonce(keys.challenge, challengeId, nonceSubject(agent, agentName));
  const isValidUnder = async (key: PublicKey): Promise<boolean> =>
    (await isSignatureValid(key, nonce, signature)) ||
    (await isSignatureValid(key, Buffer.from(nonce.toString('base64')), signature));
  const current = agent?.publicKey ?? DUMMY_PUBLIC_KEY;
  let publicKey = current;
  let isValid = await isValidUnder(current);
  if (!isValid) {
    // WHY for every agent: the time must not tell which one has a previous key.
    publicKey = (agent !== null && 'formerPublicKey' in agent ? agent.formerPublicKey : null) ?? DUMMY_PUBLIC_KEY;
    isValid = await isValidUnder(publicKey);
  }
  const token = newToken('lhs_');
  const operation = openSession(origin, {
    agentName,
    challengeId,
    challengeExpiresAt: challenge.issuedAt + CHALLENGE_LIFE_MS,
    wasIssuedToAgent: challenge.wasIssuedToAgent,
    verifiedAgainst: agent === null ? null : { agentId: agent.id, publicKey },
    isSignatureValid: isValid,
    tokenHash: hashToken(token.reveal()),
  });
  const submit = () => ledger.submit(operation);
  // ORDER: after the signature check, so that no caller uses up the session budget of another.
  const result = isValid ? budgets.sessions.charge(agentName, 1, clock.now(), submit) : submit();
  return { ...(await result), token };
}

/**
 * The subject of a nonce: the immutable id, so that an agent registered later under the name cannot use an old
 * challenge.
 */
function nonceSubject(agent: { id: string } | null, name: PrincipalName): string {
  return agent === null ? `name:${name}` : `agent:${agent.id}`;
}
