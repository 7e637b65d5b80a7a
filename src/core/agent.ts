/**
 * Agents, their sessions, and the identification of a request's caller. SOURCE: docs/api.md, "Agents" and "Logging in".
 */
import { ApiError, invalidRequest } from './errors.ts';
import { type Lease, statusOf } from './lease.ts';
import { type ActorName, ADMIN, ADMIN_ID, type AgentId, type AgentName, type Brand, type TokenHash } from './names.ts';

/** Base64 of the 32 raw bytes of an Ed25519 public key. */
export type PublicKey = Brand<string, 'PublicKey'>;

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
  readonly formerPublicKey?: PublicKey | null;
  readonly formerKeyUntil?: number | null;
}

/** Whether a login with the key succeeds at that time. */
export function hasKey(agent: Agent, publicKey: PublicKey, now: number): boolean {
  if (agent.publicKey === publicKey) return true;
  return agent.formerPublicKey === publicKey && now < (agent.formerKeyUntil ?? 0);
}

export interface Session {
  readonly tokenHash: TokenHash;
  readonly agentId: AgentId;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** The credentials of a request: the administrator's token, already compared, or the hash of a session token. */
export type Authentication =
  | { readonly kind: 'admin' }
  /** `agentName`: the session's agent when the request arrived. The batch identifies the caller again. */
  | { readonly kind: 'session'; readonly tokenHash: TokenHash; readonly agentName: AgentName }
  /** The token of a use lease, which is good for `startUse` only. */
  | { readonly kind: 'lease'; readonly tokenHash: TokenHash; readonly agentName: AgentName };

/** The submitter of an operation, not yet identified. */
export type Requester =
  | Authentication
  | { readonly kind: 'unauthenticated'; readonly remoteAddr: string | null }
  | { readonly kind: 'service' };

/** The caller, once identified. */
export type Caller =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent; readonly session: Session }
  | { readonly kind: 'lease'; readonly agent: Agent; readonly lease: Lease };

/** The lookups that `identify` needs. */
export interface CallerLookup {
  session(tokenHash: TokenHash): Session | null;
  leaseByToken(tokenHash: TokenHash): Lease | null;
  agentById(id: AgentId): Agent | null;
}

/** For every token that opens no session, so that callers learn nothing about it. */
export const UNKNOWN_TOKEN = 'The token is not valid. Log in at POST /auth/challenge and /auth/verify.';

/** In code points, not in UTF-16 code units. */
export const MAX_DESCRIPTION_LENGTH = 1024;

/**
 * Returns UNAUTHENTICATED for an unknown session or a deregistered agent, SESSION_EXPIRED for a session that has ended.
 */
export function identify(lookup: CallerLookup, authentication: Authentication, now: number): Caller | ApiError {
  if (authentication.kind === 'admin') return authentication;
  if (authentication.kind === 'lease') return identifyHolder(lookup, authentication, now);
  const session = lookup.session(authentication.tokenHash);
  return identifySession(session, session === null ? null : lookup.agentById(session.agentId), now);
}

/** The agent's name was authenticated with the token; the row of a lease is not. */
function identifyHolder(
  lookup: CallerLookup,
  { tokenHash, agentName }: Authentication & { kind: 'lease' },
  now: number,
): Caller | ApiError {
  const lease = lookup.leaseByToken(tokenHash);
  const agent = lease === null ? null : lookup.agentById(lease.agentId);
  if (lease === null || agent === null || agent.name !== agentName)
    return new ApiError('UNAUTHENTICATED', 'The token is not valid.');
  if (statusOf(lease, now) === 'active') return { kind: 'lease', agent, lease };
  return new ApiError('LEASE_ENDED', 'The use lease has ended. Ask for another one.');
}

/** As `identify`; `agent` is the one with the session's `agentId`. */
export function identifySession(
  session: Session | null,
  agent: Agent | null,
  now: number,
): (Caller & { kind: 'agent' }) | ApiError {
  const isEnded = agent !== null && session !== null && session.issuedAt <= (agent.sessionsEndedAt ?? -1);
  if (session === null || agent === null || isEnded) {
    return new ApiError('UNAUTHENTICATED', UNKNOWN_TOKEN);
  }
  if (now >= session.expiresAt) return new ApiError('SESSION_EXPIRED', 'The session has ended. Log in again.');
  return { kind: 'agent', agent, session };
}

export function actorName(caller: Caller): ActorName {
  return caller.kind === 'admin' ? ADMIN : caller.agent.name;
}

export function actorId(caller: Caller): AgentId {
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
