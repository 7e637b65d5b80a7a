/**
 * Logs in with a signed challenge, reads and ends a session.
 * SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents and sessions".
 */

import { putRow, removeRow } from '../../core/change.ts';
import type { Denial } from '../../core/denials.ts';
import type { LoginIdentity } from '../../core/identity.ts';
import {
  ADMIN,
  type AgentId,
  type ChallengeId,
  isOperatorName,
  type PrincipalName,
  type PublicKey,
  type TokenHash,
} from '../../core/names.ts';
import { type Context, denied, type Operation, operation, rejected, succeeded } from '../../core/operation.ts';
import { type Agent, hasKey } from '../agents/agent.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import type { Operator } from '../operators/operator.ts';
import { principalOf } from '../policies/policy.ts';
import type { CurrentSession, Session } from './session.ts';

export const CHALLENGE_LIFE_MS = 60_000;
export const SESSION_LIFE_MS = 3_600_000;
/** An operator's session ends after this time if it is not renewed. */
export const OPERATOR_IDLE_MS = 30 * 60_000;
/**
 * A renewal in the minute after a login or another renewal changes nothing and is not recorded, so that no client
 * fills the audit log with renewals.
 */
const MIN_RENEWAL_INTERVAL_MS = 60_000;
/** An operator's session ends after this time, however often it was renewed. */
export const OPERATOR_SESSION_LIFE_MS = 12 * 3_600_000;

/** A login whose signature was already checked, with the agent or operator and the key of that check. */
export interface LoginRequest {
  readonly agentName: PrincipalName;
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

export function toCurrent(holder: Agent | Operator, { expiresAt, endsAt }: Session, now: number): CurrentSession {
  const expiresInSeconds = Math.max(0, Math.floor((expiresAt - now) / 1000));
  const session = { agentName: holder.name, expiresAt, expiresInSeconds };
  return 'roles' in holder
    ? { ...session, roles: holder.roles, endsAt: endsAt ?? expiresAt }
    : { ...session, roles: null, endsAt: null };
}

const agentOrOperator = (identity: LoginIdentity): Agent | Operator =>
  identity.kind === 'operator' ? identity.operator : identity.agent;

/** `endsAt`: the latest end of an operator's session. */
export function newSession(
  tokenHash: TokenHash,
  { id, name }: Agent | Operator,
  now: number,
  endsAt = now + OPERATOR_SESSION_LIFE_MS,
): Session {
  const session = { tokenHash, agentId: id, issuedAt: now };
  if (!isOperatorName(name)) return { ...session, expiresAt: now + SESSION_LIFE_MS, endsAt: null };
  return { ...session, expiresAt: Math.min(now + OPERATOR_IDLE_MS, endsAt), endsAt };
}

/**
 * Opens a session for a login. Consumes the challenge in every case, so that known and unknown agents cost the same.
 * Recorded only if the agent is registered and was registered when the challenge was issued: unauthenticated callers
 * must not grow the audit log.
 */
export function openSession(
  context: Pick<Context, 'requestId' | 'remoteAddr'>,
  request: LoginRequest,
): Operation<CurrentSession> {
  const { agentName, challengeId, challengeExpiresAt, verifiedAgainst, tokenHash } = request;
  return {
    reads: { challenge: challengeId },
    // WHY the address and not the agent: anyone can name an agent, and must not use up that agent's share of the
    // server.
    auth: { kind: 'unauthenticated', remoteAddr: context.remoteAddr },
    decide(known, { now }) {
      const agent = known.control.principalByName(agentName);
      const isExpired = now >= challengeExpiresAt;
      const isConsumed = known.loaded.spentChallenges.has(challengeId);
      const isSameAgent =
        agent !== null && agent.id === verifiedAgainst?.agentId && hasKey(agent, verifiedAgainst.publicKey, now);
      const denial: Denial | null = isExpired
        ? { code: 'challenge_expired' }
        : isConsumed
          ? { code: 'challenge_used' }
          : !isSameAgent || !request.isSignatureValid
            ? { code: 'signature_invalid' }
            : null;
      const entry =
        agent === null || !request.wasIssuedToAgent
          ? null
          : draftEntry({
              eventType: 'auth.verify',
              agentName: agent.name,
              resource: principalOf(agent.name),
              result: denial ?? 'allowed',
              requestId: context.requestId,
              remoteAddr: context.remoteAddr,
            });
      const consume =
        isExpired || isConsumed
          ? []
          : [{ kind: 'consumeChallenge' as const, id: challengeId, expiresAt: challengeExpiresAt }];
      if (agent === null || entry === null || denial !== null)
        return rejected(denial ?? { code: 'login_failed' }, entry, consume);
      const session = newSession(tokenHash, agent, now);
      return succeeded(toCurrent(agent, session, now), entry, [...consume, putRow('session', session)]);
    },
  };
}

/**
 * Whether the caller's token may be that of a browser's session: an operator's or the administrator's. Null for the
 * administrator; only a rejection is recorded.
 */
export function readBrowserSession(context: Context): Operation<CurrentSession | null> {
  return operation<CurrentSession | null>(
    { context, permission: 'session.browser', resource: '*' },
    ({ identity, moment }) =>
      succeeded(
        'session' in identity ? toCurrent(agentOrOperator(identity), identity.session, moment.now) : null,
        null,
      ),
  );
}

/**
 * Whether the caller may hand its session over to a browser: an operator may, with its whole token. WHY not a browser:
 * a script that got into the page could otherwise take the session out of it. Only a rejection is recorded.
 */
export function readHandoffSession(context: Context, isBrowser: boolean): Operation<CurrentSession> {
  return operation<CurrentSession>(
    { context, permission: 'session.handoff', resource: '*' },
    ({ identity, moment, entry }) => {
      if (isBrowser) return denied({ entry }, { code: 'browser_session' });
      if (identity.kind === 'operator')
        return succeeded(toCurrent(identity.operator, identity.session, moment.now), null);
      return denied({ entry }, { code: 'operator_required', to: 'handoff' });
    },
  );
}

export function readSession(context: Context): Operation<CurrentSession> {
  return operation({ context, permission: 'session.read', resource: '*' }, ({ identity, moment }) => {
    if (!('session' in identity)) return rejected({ code: 'session_not_found' }, null);
    return succeeded(toCurrent(agentOrOperator(identity), identity.session, moment.now), null);
  });
}

/** Extends an operator's session by its idle time, up to its end, at most once a minute. */
export function renewSession(context: Context): Operation<CurrentSession> {
  return operation<CurrentSession>(
    { context, permission: 'session.renew', resource: '*' },
    ({ identity, moment, entry }) => {
      if (identity.kind !== 'operator') {
        return denied({ entry }, { code: 'renewal_needs_operator' });
      }
      const { operator, session } = identity;
      const endsAt = session.endsAt ?? session.expiresAt;
      // The time of the login or of the last renewal. Nothing extends a session beyond its absolute end.
      const lastRenewedAt = session.expiresAt - OPERATOR_IDLE_MS;
      if (session.expiresAt >= endsAt || moment.now - lastRenewedAt < MIN_RENEWAL_INTERVAL_MS)
        return succeeded(toCurrent(operator, session, moment.now), null);
      const renewed = { ...session, expiresAt: Math.min(moment.now + OPERATOR_IDLE_MS, endsAt) };
      return succeeded(toCurrent(operator, renewed, moment.now), entry('allowed', { resource: operator.name }), [
        putRow('session', renewed),
      ]);
    },
  );
}

export function endSession(context: Context): Operation<null> {
  return operation({ context, permission: 'session.end', resource: `agent:${ADMIN}` }, ({ identity, entry }) => {
    if (!('session' in identity)) return denied({ entry }, { code: 'session_not_found' });
    const resource = principalOf(agentOrOperator(identity).name);
    const { tokenHash, issuedAt } = identity.session;
    return succeeded(null, entry('allowed', { resource }), [removeRow('session', { tokenHash, issuedAt })]);
  });
}
