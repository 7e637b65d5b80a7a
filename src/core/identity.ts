/**
 * Who makes a request: the token that it presents, and the identified caller. SOURCE: docs/api.md, "Logging in".
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

/** The credentials of a request: the administrator's token, already compared, or the hash of a token. */
export type Authentication =
  | { readonly kind: 'admin' }
  /** `agentName`: the session's agent when the request arrived. The batch identifies the caller again. */
  | { readonly kind: 'session'; readonly tokenHash: TokenHash; readonly agentName: AgentName }
  | { readonly kind: 'operator'; readonly tokenHash: TokenHash; readonly agentName: OperatorName }
  /** The token of a use lease, which is good for `startUse` only. */
  | { readonly kind: 'lease'; readonly tokenHash: TokenHash; readonly agentName: AgentName };

export type Requester =
  | Authentication
  | { readonly kind: 'unauthenticated'; readonly remoteAddr: string | null }
  | { readonly kind: 'service' };

export type Caller =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent; readonly session: Session }
  | { readonly kind: 'operator'; readonly operator: Operator; readonly session: Session }
  | { readonly kind: 'lease'; readonly agent: Agent; readonly lease: Lease };

export type SessionCaller = Extract<Caller, { session: Session }>;

export interface CallerLookup {
  session(tokenHash: TokenHash): Session | null;
  leaseByToken(tokenHash: TokenHash): Lease | null;
  agentById(id: AgentId): Agent | null;
  operatorById(id: AgentId): Operator | null;
}

type HolderLookup = Pick<CallerLookup, 'agentById' | 'operatorById'>;

/** The caller of a session or a lease that has not ended. */
export function identify(
  lookup: CallerLookup,
  authentication: Authentication,
  now: number,
): Caller | SessionDenial | DenialOf<'use_token_unknown' | 'use_lease_ended'> {
  if (authentication.kind === 'admin') return authentication;
  if (authentication.kind === 'lease') return identifyHolder(lookup, authentication, now);
  return identifySession(lookup.session(authentication.tokenHash), lookup, now);
}

/** The agent's name was authenticated with the token; the row of a lease is not. */
function identifyHolder(
  lookup: CallerLookup,
  { tokenHash, agentName }: Authentication & { kind: 'lease' },
  now: number,
): Caller | DenialOf<'use_token_unknown' | 'use_lease_ended'> {
  const lease = lookup.leaseByToken(tokenHash);
  const agent = lease === null ? null : lookup.agentById(lease.agentId);
  if (lease === null || agent === null || agent.name !== agentName) return { code: 'use_token_unknown' };
  if (statusOf(lease, now) === 'active') return { kind: 'lease', agent, lease };
  return { code: 'use_lease_ended' };
}

/** A token that opens no session has one denial, so that callers learn nothing about it. */
export type SessionDenial = DenialOf<'token_unknown' | 'session_expired'>;

/** The caller of a session that has not ended. */
export function identifySession(
  session: Session | null,
  lookup: HolderLookup,
  now: number,
): SessionCaller | SessionDenial {
  const caller = session === null ? null : holderOf(session, lookup);
  if (session === null || caller === null) return { code: 'token_unknown' };
  const { sessionsEndedAt } = caller.kind === 'agent' ? caller.agent : caller.operator;
  if (session.issuedAt <= (sessionsEndedAt ?? -1)) return { code: 'token_unknown' };
  if (now >= session.expiresAt) return { code: 'session_expired' };
  return caller;
}

function holderOf(session: Session, lookup: HolderLookup): SessionCaller | null {
  const agent = lookup.agentById(session.agentId);
  if (agent !== null) return { kind: 'agent', agent, session };
  const operator = lookup.operatorById(session.agentId);
  return operator === null ? null : { kind: 'operator', operator, session };
}

export function actorName(caller: Caller): ActorName {
  if (caller.kind === 'operator') return caller.operator.name;
  return caller.kind === 'admin' ? ADMIN : caller.agent.name;
}

export function actorId(caller: Caller): AgentId {
  if (caller.kind === 'operator') return caller.operator.id;
  return caller.kind === 'admin' ? ADMIN_ID : caller.agent.id;
}
