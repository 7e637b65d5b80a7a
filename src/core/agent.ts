/** Agents, their sessions and their challenges, as the rules see them. SOURCE: interface 2.5 to 2.7. */
import type { Brand } from './brand.ts';
import { ApiError, invalidRequest } from './errors.ts';
import { type ActorName, ADMIN, ADMIN_ID, type AgentId, type AgentName, type TokenHash } from './names.ts';

/** Base64 of the 32 raw bytes of an Ed25519 public key. */
export type PublicKey = Brand<string, 'PublicKey'>;

export interface Agent {
  /** Immutable: a name registered again gets another id, and inherits nothing. */
  readonly id: AgentId;
  readonly name: AgentName;
  readonly description: string;
  readonly publicKey: PublicKey;
  readonly registeredAt: number;
}

export interface Session {
  readonly tokenHash: TokenHash;
  readonly agentId: AgentId;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** What a request showed: the administrator's token (already compared), or the hash of a session's. */
export type Authentication =
  | { readonly kind: 'admin' }
  /** `agentName`: whose the session was when the request came in; the turn looks again. */
  | { readonly kind: 'session'; readonly tokenHash: TokenHash; readonly agentName: AgentName };

/** Who submits an operation, not yet identified. */
export type Requester =
  | Authentication
  | { readonly kind: 'unauthenticated'; readonly remoteAddr: string | null }
  | { readonly kind: 'service' };

/** The caller, once identified. */
export type Caller =
  | { readonly kind: 'admin' }
  | { readonly kind: 'agent'; readonly agent: Agent; readonly session: Session };

/** What `identify` looks at. */
export interface CallerLookup {
  session(tokenHash: TokenHash): Session | null;
  agentById(id: AgentId): Agent | null;
}

/** In characters, not in units of text. */
export const MAX_DESCRIPTION_LENGTH = 1024;

/** Who presents this. UNAUTHENTICATED for what is no session, or a deregistered agent's; SESSION_EXPIRED for one that has ended. */
export function identify(register: CallerLookup, authentication: Authentication, now: number): Caller | ApiError {
  if (authentication.kind === 'admin') return authentication;
  const session = register.session(authentication.tokenHash);
  return identifySession(session, session === null ? null : register.agentById(session.agentId), now);
}

/** Whose session it is: `agent` is the one that it names. */
export function identifySession(
  session: Session | null,
  agent: Agent | null,
  now: number,
): (Caller & { kind: 'agent' }) | ApiError {
  if (session === null || agent === null) {
    return new ApiError('UNAUTHENTICATED', 'The token is not valid. Log in at POST /auth/challenge and /auth/verify.');
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
  // A character beyond the basic plane is two units of text.
  const isTooLong = text.length > 2 * MAX_DESCRIPTION_LENGTH || [...text].length > MAX_DESCRIPTION_LENGTH;
  // WHY no U+0000: it is the one character that not every store can hold as text.
  if (isTooLong || !text.isWellFormed() || text.includes('\u0000')) {
    throw invalidRequest(
      'description',
      `must be at most ${MAX_DESCRIPTION_LENGTH} characters of well-formed Unicode without U+0000`,
    );
  }
  return text;
}
