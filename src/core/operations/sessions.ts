/**
 * Logs in with a signed challenge, reads and ends a session.
 * SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents and sessions".
 */
import { hasKey, type PublicKey, type Session } from '../agent.ts';
import type { EntryDraft } from '../audit.ts';
import { ApiError } from '../errors.ts';
import type { AgentId, AgentName, ChallengeId, TokenHash } from '../names.ts';
import { ADMIN } from '../names.ts';
import { type Context, type Operation, operation, rejected, succeeded } from '../operation.ts';

export const CHALLENGE_LIFE_MS = 60_000;
export const SESSION_LIFE_MS = 3_600_000;

/** A login whose signature was already checked, with the agent and the key of that check. */
export interface LoginRequest {
  readonly agentName: AgentName;
  readonly challengeId: ChallengeId;
  readonly challengeExpiresAt: number;
  /** Whether the agent was registered when the challenge was issued. */
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
 * Opens a session for a login. Consumes the challenge in every case, so that known and unknown agents cost the same.
 * Recorded only if the agent is registered and was registered when the challenge was issued: unauthenticated callers
 * must not grow the log.
 */
export function openSession(
  context: Pick<Context, 'requestId' | 'remoteAddr'>,
  request: LoginRequest,
): Operation<LoginResult> {
  const { agentName, challengeId, challengeExpiresAt, verifiedAgainst, tokenHash } = request;
  return {
    reads: { challenge: challengeId },
    // WHY the address and not the agent: anyone can name an agent, and must not use up that agent's share of the
    // service.
    requester: { kind: 'unauthenticated', remoteAddr: context.remoteAddr },
    decide(known, { now }) {
      const agent = known.control.agentByName(agentName);
      const isExpired = now >= challengeExpiresAt;
      const isConsumed = known.loaded.spentChallenges.has(challengeId);
      const isSameAgent =
        agent !== null && agent.id === verifiedAgainst?.agentId && hasKey(agent, verifiedAgainst.publicKey, now);
      const reason = isExpired
        ? 'the challenge has expired'
        : isConsumed
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
      const consume =
        isExpired || isConsumed
          ? []
          : [{ kind: 'consumeChallenge' as const, id: challengeId, expiresAt: challengeExpiresAt }];
      if (agent === null || entry === null || reason !== null) {
        const error = authFailed();
        return rejected(error.code, error.message, entry, consume);
      }
      const session: Session = { tokenHash, agentId: agent.id, issuedAt: now, expiresAt: now + SESSION_LIFE_MS };
      return succeeded({ agentName: agent.name, expiresAt: session.expiresAt }, entry, [
        ...consume,
        { kind: 'putSession', session },
      ]);
    },
  };
}

export interface CurrentSession {
  readonly agentName: AgentName;
  readonly expiresAt: number;
}

const NO_SESSION = 'This token is not that of a session.';

/** The caller's session; not recorded. */
export function readSession(context: Context): Operation<CurrentSession> {
  return operation({ context, event: 'session.read', resource: '*', requiredRole: 'authenticated' }, ({ caller }) => {
    if (caller.kind !== 'agent') return rejected('NOT_FOUND', NO_SESSION, null);
    return succeeded({ agentName: caller.agent.name, expiresAt: caller.session.expiresAt }, null);
  });
}

export function endSession(context: Context): Operation<null> {
  return operation(
    { context, event: 'session.end', resource: `agent:${ADMIN}`, requiredRole: 'authenticated' },
    ({ caller, entry }) => {
      if (caller.kind !== 'agent') return rejected('NOT_FOUND', NO_SESSION, entry('not_found'));
      const resource = `agent:${caller.agent.name}`;
      const { tokenHash, issuedAt } = caller.session;
      return succeeded(null, entry('allowed', { resource }), [{ kind: 'removeSession', tokenHash, issuedAt }]);
    },
  );
}
