/** Authentication of requests: anonymous, with a given token, or as an agent that logs in. */
import { Secret } from '../vault/credentials/credential.ts';
import { badOption, LeaseholdError } from './errors.ts';
import { Expiry } from './expiry.ts';
import { abortable } from './retries.ts';
import { fromBase64, type Signer, toBase64 } from './signers.ts';
import type { AuthProvider, Transport } from './transport.ts';
import type { AgentSession, Challenge, SessionWire } from './types.ts';

export const ANONYMOUS: AuthProvider = {
  token: () => Promise.resolve(null),
  invalidate: () => false,
};

/** Characters that a header accepts. WHY checked here: the runtime's own error message would quote the token. */
const VISIBLE = /^[\x21-\x7e]+$/;

/** @throws LeaseholdError BAD_OPTIONS */
export function tokenCaller(token: string | Secret): AuthProvider {
  const secret = token instanceof Secret ? token : new Secret(token);
  if (!VISIBLE.test(secret.reveal())) {
    throw badOption('token', 'must be visible ASCII characters, without spaces and line breaks');
  }
  return { token: () => Promise.resolve(secret.reveal()), invalidate: () => false };
}

/** A browser's session: the cookie that the browser sends, and the part that `read` returns. */
export function browserCaller(read: () => string | null): AuthProvider {
  return { token: () => Promise.resolve(null), sessionPart: read, invalidate: () => false };
}

/** Remaining lifetime at which a new session is requested, so that none expires during a request. */
const RENEWAL_THRESHOLD_MS = 60_000;

interface CurrentSession {
  readonly session: AgentSession;
  readonly expiry: Expiry;
}

export class AgentAuth implements AuthProvider {
  readonly #transport: Transport;
  readonly #agent: string;
  readonly #signer: Signer;
  #current: CurrentSession | null = null;
  /** The login in progress, which all waiting calls share. */
  #login: Promise<CurrentSession> | null = null;

  constructor(transport: Transport, agent: string, signer: Signer) {
    this.#transport = transport;
    this.#agent = agent;
    this.#signer = signer;
  }

  async token(signal: AbortSignal): Promise<string> {
    return (await this.session(signal)).session_id.reveal();
  }

  /** Returns the session; logs in when there is no session or it expires soon. @throws LeaseholdError */
  async session(signal: AbortSignal): Promise<AgentSession> {
    const current = this.#current;
    if (current !== null && current.expiry.remainingMs() > RENEWAL_THRESHOLD_MS) return current.session;
    signal.throwIfAborted();
    this.#login ??= this.#logIn().finally(() => {
      this.#login = null;
    });
    // An aborted call stops waiting; the login continues for the other calls.
    return (await abortable(this.#login, signal)).session;
  }

  invalidate(rejected: string): boolean {
    if (this.#current?.session.session_id.reveal() === rejected) this.#current = null;
    return true;
  }

  /** Returns the session after any login in progress; null when there is no valid session. */
  async current(): Promise<AgentSession | null> {
    await this.#login?.catch(() => undefined);
    return this.#current === null || this.#current.expiry.remainingMs() <= 0 ? null : this.#current.session;
  }

  async #logIn(): Promise<CurrentSession> {
    const agent_name = this.#agent;
    const { data: challenge } = await this.#transport.ask<Challenge>(
      { method: 'POST', path: '/auth/challenge', body: { agent_name }, retry: 'always' },
      ANONYMOUS,
    );
    const { challenge_id, nonce } = challenge;
    const signature = toBase64(await this.#signer(toBytes(nonce)));
    const { data, sentAt } = await this.#transport.ask<SessionWire>(
      { method: 'POST', path: '/auth/verify', body: { challenge_id, agent_name, signature }, retry: 'never' },
      ANONYMOUS,
    );
    const { session_id, ...others } = data;
    this.#current = {
      session: { ...others, session_id: new Secret(session_id) },
      expiry: new Expiry(sentAt, others.expires_in * 1000),
    };
    return this.#current;
  }
}

function toBytes(nonce: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(nonce);
  } catch {
    throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: nonce must be base64');
  }
}
