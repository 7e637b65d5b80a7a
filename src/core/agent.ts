/**
 * Agents, their sessions, and the identification of a request's caller. SOURCE: docs/api.md, "Agents" and "Logging in".
 */
import { invalidRequest } from '../engine/errors.ts';
import type { DenialOf } from './denials.ts';
import { type Lease, statusOf } from './lease.ts';
import {
  type ActorName,
  ADMIN,
  ADMIN_ID,
  type AgentId,
  type AgentName,
  type OperatorName,
  type PublicKey,
  type TokenHash,
} from './names.ts';
import type { Operator } from './operator.ts';

export interface Agent {
  /** Immutable: an agent registered again under the same name gets a new id and inherits nothing. */
  readonly id: AgentId;
  readonly name: AgentName;
  readonly description: string;
  readonly publicKey: PublicKey;
  readonly registeredAt: number;
  /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
  readonly sessionsEndedAt: number | null;
  /** The key before the last rotation, with which logins succeed until `formerKeyUntil`. */
  readonly formerPublicKey: PublicKey | null;
  readonly formerKeyUntil: number | null;
  /** Who registered it or gave it a key. */
  readonly registeredBy: readonly ActorName[];
}

export function hasKey(
  agent: Partial<Pick<Agent, 'formerPublicKey' | 'formerKeyUntil'>> & Pick<Operator, 'publicKey'>,
  publicKey: PublicKey,
  now: number,
): boolean {
  if (agent.publicKey === publicKey) return true;
  return agent.formerPublicKey === publicKey && now < (agent.formerKeyUntil ?? 0);
}

export interface Session {
  readonly tokenHash: TokenHash;
  /** Id of an agent or of an operator. */
  readonly agentId: AgentId;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The time up to which renewals extend an operator's session; absent for an agent's. */
  readonly endsAt?: number | null;
}

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

/** The length in code points, not in UTF-16 code units. */
export const MAX_DESCRIPTION_LENGTH = 1024;

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

/** As `identify`. */
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

/** @throws INVALID_REQUEST */
export function parseDescription(text: string): string {
  // A code point outside the Basic Multilingual Plane takes two UTF-16 code units.
  const isTooLong = text.length > 2 * MAX_DESCRIPTION_LENGTH || [...text].length > MAX_DESCRIPTION_LENGTH;
  // WHY U+0000 is rejected: PostgreSQL cannot store it as text.
  if (isTooLong || !text.isWellFormed() || text.includes('\u0000')) {
    throw invalidRequest(
      'description',
      `must be at most ${MAX_DESCRIPTION_LENGTH} characters of well-formed Unicode without U+0000`,
    );
  }
  return text;
}
