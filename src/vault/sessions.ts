/** Challenges, logins and sessions. SOURCE: interface 4.4 and 5.2; decisions, "Authentication". */
import { ApiError } from '../core/errors.ts';
import type { AgentName, ChallengeId } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import {
  authFailed,
  CHALLENGE_LIFE_MS,
  type CurrentSession,
  endSession as end,
  type LoginResult,
  readSession as read,
  verify,
} from '../core/operations/sessions.ts';
import type { Secret } from '../core/secret.ts';
import { type DecodedChallenge, decodeChallengeId, deriveNonce, encodeChallengeId } from '../crypto/challenges.ts';
import { DUMMY_PUBLIC_KEY, isSignatureValid } from '../crypto/ed25519.ts';
import { hashToken, newToken } from '../crypto/tokens.ts';
import type { Vault } from './vault.ts';

export interface Challenge {
  readonly challengeId: ChallengeId;
  /** 32 bytes, to be signed. */
  readonly nonce: Buffer;
  readonly expiresAt: number;
}

/** An unknown agent gets a challenge of the same shape. Nothing is kept. @throws StoreFailure, UNAVAILABLE */
export async function issueChallenge(vault: Vault, agentName: AgentName): Promise<Challenge> {
  const { keys, clock, ledger } = vault;
  await ledger.refresh();
  const agent = ledger.memory.control.agentByName(agentName);
  const issuedAt = clock.now();
  const challengeId = encodeChallengeId(keys.challenge, issuedAt, agent !== null);
  const nonce = deriveNonce(keys.challenge, challengeId, boundTo(agent, agentName));
  return { challengeId, nonce, expiresAt: issuedAt + CHALLENGE_LIFE_MS };
}

export interface Proof {
  readonly challengeId: ChallengeId;
  readonly agentName: AgentName;
  readonly signature: Uint8Array;
}

/**
 * Opens a session for a challenge that was answered. Every way to fail has the same answer, and for all challenges that were
 * issued here the same work: a signature is checked, and the challenge is spent.
 * @throws AUTH_FAILED, RATE_LIMITED
 */
export async function login(
  vault: Vault,
  origin: Pick<Context, 'requestId' | 'remoteAddr'>,
  proof: Proof,
): Promise<LoginResult & { token: Secret }> {
  const { clock, keys, limiter } = vault;
  const { agentName } = proof;
  const challenge = decodeChallengeId(keys.challenge, proof.challengeId);
  // Not charged, or anybody could use up the tries of an address: an invented id costs no check of a signature.
  if (challenge === null) throw authFailed();
  const settle = await limiter.admit(agentName, origin.remoteAddr, clock);
  try {
    const loggedIn = await answerChallenge(vault, origin, proof, challenge);
    settle(false);
    return loggedIn;
  } catch (error) {
    settle(error instanceof ApiError && error.code === 'AUTH_FAILED');
    throw error;
  }
}

async function answerChallenge(
  { keys, ledger, budgets, clock }: Vault,
  origin: Pick<Context, 'requestId' | 'remoteAddr'>,
  { challengeId, agentName, signature }: Proof,
  challenge: DecodedChallenge,
): Promise<LoginResult & { token: Secret }> {
  await ledger.refresh();
  const agent = ledger.memory.control.agentByName(agentName);
  const nonce = deriveNonce(keys.challenge, challengeId, boundTo(agent, agentName));
  const publicKey = agent?.publicKey ?? DUMMY_PUBLIC_KEY;
  const isValid =
    (await isSignatureValid(publicKey, nonce, signature)) ||
    (await isSignatureValid(publicKey, Buffer.from(nonce.toString('base64')), signature));
  const token = newToken('lhs_');
  const operation = verify(origin, {
    agentName,
    challengeId,
    challengeExpiresAt: challenge.issuedAt + CHALLENGE_LIFE_MS,
    wasIssuedToAgent: challenge.wasIssuedToAgent,
    verifiedAgainst: agent === null ? null : { agentId: agent.id, publicKey: agent.publicKey },
    isSignatureValid: isValid,
    tokenHash: hashToken(token.reveal()),
  });
  const submit = () => ledger.submit(operation);
  // ORDER: after the signature, so that nobody uses up the sessions of another.
  const answer = isValid ? budgets.sessions.charge(agentName, 1, clock.now(), submit) : submit();
  return { ...(await answer).reply, token };
}

export async function readSession(vault: Vault, context: Context): Promise<CurrentSession> {
  return (await vault.ledger.submit(read(context))).reply;
}

export async function endSession(vault: Vault, context: Context): Promise<void> {
  await vault.ledger.submit(end(context));
}

/** What a nonce is bound to: the immutable id, so that a name that was registered again can't answer an old challenge. */
function boundTo(agent: { id: string } | null, name: AgentName): string {
  return agent === null ? `name:${name}` : `agent:${agent.id}`;
}
