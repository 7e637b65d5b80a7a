/**
 * The auth context of a request, whose token is not verified yet, and the identity that it proves. SOURCE: docs/api.md,
 * "Logging in".
 */
import type { Agent } from '../vault/agents/agent.ts';
import { type Lease, statusOf } from '../vault/leases/lease.ts';
import type { Operator } from '../vault/operators/operator.ts';
import type { Session } from '../vault/sessions/session.ts';
import type { DenialOf } from './denials.ts';
import {
  type ActorName,
  ADMIN,
  ADMIN_ID,
  type AgentId,
  type AgentName,
  type OperatorName,
  type TokenHash,
} from './names.ts';

/** The credentials of a request: the administrator's token, already compared, or the hash of another token. */
export type AuthContext =
  | { readonly kind: 'admin' }
  /** `agentName`: the session's agent when the request arrived. The batch identifies the caller again. */
  | { readonly kind: 'session'; readonly tokenHash: TokenHash; readonly agentName: AgentName }
  | { readonly kind: 'operator'; readonly tokenHash: TokenHash; readonly agentName: OperatorName }
  /** The token of a use lease, which is good for `startUse` only. */
  | { readonly kind: 'lease'; readonly tokenHash: TokenHash; readonly agentName: AgentName };

/** The auth context of an operation, which a request without a token or the server itself may submit. */
export type OperationAuth =
  | AuthContext
  | { readonly kind: 'unauthenticated'; readonly remoteAddr: string | null }
  | { readonly kind: 'service' };

/** A verified auth context. */
export type Identity =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent; readonly session: Session }
  | { readonly kind: 'operator'; readonly operator: Operator; readonly session: Session }
  | { readonly kind: 'lease'; readonly agent: Agent; readonly lease: Lease };

/** The identity of a session. */
export type LoginIdentity = Extract<Identity, { session: Session }>;

export interface IdentityLookup {
  session(tokenHash: TokenHash): Session | null;
  leaseByToken(tokenHash: TokenHash): Lease | null;
  agentById(id: AgentId): Agent | null;
  operatorById(id: AgentId): Operator | null;
}

type PrincipalLookup = Pick<IdentityLookup, 'agentById' | 'operatorById'>;

/** The identity of a session or a lease that has not ended. */
export function identify(
  lookup: IdentityLookup,
  auth: AuthContext,
  now: number,
): Identity | SessionDenial | DenialOf<'use_token_unknown' | 'use_lease_ended'> {
  if (auth.kind === 'admin') return auth;
  if (auth.kind === 'lease') return identifyLease(lookup, auth, now);
  return identifySession(lookup.session(auth.tokenHash), lookup, now);
}

/** The agent's name was authenticated with the token; the row of a lease is not. */
function identifyLease(
  lookup: IdentityLookup,
  { tokenHash, agentName }: AuthContext & { kind: 'lease' },
  now: number,
): Identity | DenialOf<'use_token_unknown' | 'use_lease_ended'> {
  const lease = lookup.leaseByToken(tokenHash);
  const agent = lease === null ? null : lookup.agentById(lease.agentId);
  if (lease === null || agent === null || agent.name !== agentName) return { code: 'use_token_unknown' };
  if (statusOf(lease, now) === 'active') return { kind: 'lease', agent, lease };
  return { code: 'use_lease_ended' };
}

/** A token that opens no session has one denial, so that callers learn nothing about it. */
export type SessionDenial = DenialOf<'token_unknown' | 'session_expired'>;

/** The identity of a session that has not ended. */
export function identifySession(
  session: Session | null,
  lookup: PrincipalLookup,
  now: number,
): LoginIdentity | SessionDenial {
  const identity = session === null ? null : principalOf(session, lookup);
  if (session === null || identity === null) return { code: 'token_unknown' };
  const { sessionsEndedAt } = identity.kind === 'agent' ? identity.agent : identity.operator;
  if (session.issuedAt <= (sessionsEndedAt ?? -1)) return { code: 'token_unknown' };
  if (now >= session.expiresAt) return { code: 'session_expired' };
  return identity;
}

function principalOf(session: Session, lookup: PrincipalLookup): LoginIdentity | null {
  const agent = lookup.agentById(session.agentId);
  if (agent !== null) return { kind: 'agent', agent, session };
  const operator = lookup.operatorById(session.agentId);
  return operator === null ? null : { kind: 'operator', operator, session };
}

export function actorName(identity: Identity): ActorName {
  if (identity.kind === 'operator') return identity.operator.name;
  return identity.kind === 'admin' ? ADMIN : identity.agent.name;
}

export function actorId(identity: Identity): AgentId {
  if (identity.kind === 'operator') return identity.operator.id;
  return identity.kind === 'admin' ? ADMIN_ID : identity.agent.id;
}
