/** Logs in with a signed challenge, reads and ends a session. SOURCE: interface 4.4 and 5.2; decisions, "Authentication". */
import type { PublicKey, Session } from '../agent.ts';
import type { EntryDraft } from '../audit.ts';
import { ApiError } from '../errors.ts';
import type { AgentId, AgentName, ChallengeId, TokenHash } from '../names.ts';
import { ADMIN } from '../names.ts';
import { type Context, type Operation, operation, refused, succeeded } from '../operation.ts';

export const CHALLENGE_LIFE_MS = 60_000;
export const SESSION_LIFE_MS = 3_600_000;

/** A login whose signature is checked already, with the agent and the key it was checked against. */
export interface VerifyRequest {
  readonly agentName: AgentName;
  readonly challengeId: ChallengeId;
  readonly challengeExpiresAt: number;
  /** Whether the challenge was issued to an agent that was registered then. */
  readonly wasIssuedToAgent: boolean;
  /** Null if no agent had the name when the signature was checked. */
  readonly verifiedAgainst: { readonly agentId: AgentId; readonly publicKey: PublicKey } | null;
  readonly isSignatureValid: boolean;
  /** The session's token, hashed; used only on success. */
  readonly tokenHash: TokenHash;
}

export interface LoginResult {
  readonly agentName: AgentName;
  readonly expiresAt: number;
}

/** All failures return the same error; only the audit log records the reason. */
export function authFailed(): ApiError {
  return new ApiError(
    'AUTH_FAILED',
    'Login failed: the agent is not registered, this is not its key, or the challenge has ended. Each challenge works once, for 60 seconds.',
  );
}

/**
 * Consumes the challenge in every case, so that known and unknown agents cost the same. Recorded only if the challenge was issued
 * to a registered agent and the name is an agent's: unauthenticated callers must not grow the log.
 */
export function verify(
  context: Pick<Context, 'requestId' | 'remoteAddr'>,
  request: VerifyRequest,
): Operation<LoginResult> {
  const { agentName, challengeId, challengeExpiresAt, verifiedAgainst, tokenHash } = request;
  return {
    reads: { challenge: challengeId },
    // WHY the address: anyone can name an agent, and must not use up that agent's share of the service.
    requester: { kind: 'unauthenticated', remoteAddr: context.remoteAddr },
    decide(known, { now }) {
      const agent = known.control.agentByName(agentName);
      const isExpired = now >= challengeExpiresAt;
      const isSpent = known.loaded.spentChallenges.has(challengeId);
      const isSameAgent =
        agent !== null && agent.id === verifiedAgainst?.agentId && agent.publicKey === verifiedAgainst.publicKey;
      const reason = isExpired
        ? 'the challenge has expired'
        : isSpent
          ? 'the challenge was used already'
          : !isSameAgent || !request.isSignatureValid
            ? 'the signature does not fit the challenge and the key'
            : null;
      const entry: EntryDraft | null =
        agent === null || !request.wasIssuedToAgent
          ? null
          : {
              eventType: 'auth.verify',
              agentName: agent.name,
              resource: `agent:${agent.name}`,
              result: reason === null ? 'allowed' : 'denied',
              policyName: null,
              leaseId: null,
              reason,
              requestId: context.requestId,
              remoteAddr: context.remoteAddr,
            };
      const spend =
        isExpired || isSpent
          ? []
          : [{ kind: 'consumeChallenge' as const, id: challengeId, expiresAt: challengeExpiresAt }];
      if (agent === null || entry === null || reason !== null) {
        const fault = authFailed();
        return refused(fault.code, fault.message, entry, spend);
      }
      const session: Session = { tokenHash, agentId: agent.id, issuedAt: now, expiresAt: now + SESSION_LIFE_MS };
      return succeeded({ agentName: agent.name, expiresAt: session.expiresAt }, entry, [
        ...spend,
        { kind: 'putSession', session },
      ]);
    },
  };
}

export interface CurrentSession {
  readonly agentName: AgentName;
  readonly expiresAt: number;
}

const NO_SESSION = 'The administrator has no session.';

/** The caller's session; not recorded. */
export function readSession(context: Context): Operation<CurrentSession> {
  return operation({ context, event: 'session.read', resource: '*', requiredRole: 'agent' }, ({ caller }) => {
    if (caller.kind === 'admin') return refused('NOT_FOUND', NO_SESSION, null);
    return succeeded({ agentName: caller.agent.name, expiresAt: caller.session.expiresAt }, null);
  });
}

export function endSession(context: Context): Operation<null> {
  return operation(
    { context, event: 'session.end', resource: `agent:${ADMIN}`, requiredRole: 'agent' },
    ({ caller, entry }) => {
      if (caller.kind === 'admin') return refused('NOT_FOUND', NO_SESSION, entry('not_found'));
      const resource = `agent:${caller.agent.name}`;
      return succeeded(null, entry('allowed', { resource }), [
        { kind: 'removeSession', tokenHash: caller.session.tokenHash },
      ]);
    },
  );
}
