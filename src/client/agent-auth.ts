/** An agent that asks: it logs in when it has to, and again before its session ends or when that was ended. */
import { Secret } from '../core/secret.ts';
import { ANONYMOUS, type AuthProvider } from './auth-provider.ts';
import { fromBase64, toBase64 } from './base64.ts';
import { decodeChallenge, decodeSession } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
import { Expiry, estimateDurationMs } from './expiry.ts';
import { isTransient } from './retries.ts';
import type { Signer } from './signers.ts';
import type { Transport } from './transport.ts';
import type { Session } from './types.ts';

/** Of a session's time: what is left when the next one is fetched, so that none ends under way. */
const RENEWED_WITH_LEFT_MS = 60_000;

interface Held {
  readonly session: Session;
  readonly end: Expiry;
}

export class AgentAuth implements AuthProvider {
  readonly #transport: Transport;
  readonly #agent: string;
  readonly #signer: Signer;
  #held: Held | null = null;
  /** One login at a time, however many wait for it. */
  #login: Promise<Held> | null = null;

  constructor(transport: Transport, agent: string, signer: Signer) {
    this.#transport = transport;
    this.#agent = agent;
    this.#signer = signer;
  }

  async token(signal: AbortSignal): Promise<string> {
    return (await this.session(signal)).session_id.reveal();
  }

  /** The session, which is begun where there is none or it ends soon. @throws LeaseholdError */
  async session(signal: AbortSignal): Promise<Session> {
    const held = this.#held;
    if (held !== null && held.end.remainingMs() > RENEWED_WITH_LEFT_MS) return held.session;
    try {
      return (await this.#share(signal)).session;
    } catch (error) {
      // The old one does for as long as it lasts.
      if (held !== null && held === this.#held && held.end.remainingMs() > 0 && isTransient(error)) return held.session;
      throw error;
    }
  }

  invalidate(refused: string): boolean {
    if (this.#held?.session.session_id.reveal() === refused) this.#held = null;
    return true;
  }

  /** The session that there is, also where it is being begun just now; null where there is none. */
  async current(): Promise<Session | null> {
    await this.#login?.catch(() => undefined);
    return this.#held === null || this.#held.end.remainingMs() <= 0 ? null : this.#held.session;
  }

  /** Who leaves early leaves the login to those who stay. */
  #share(signal: AbortSignal): Promise<Held> {
    signal.throwIfAborted();
    this.#login ??= this.#logIn().finally(() => {
      this.#login = null;
    });
    return abortable(this.#login, signal);
  }

  async #logIn(): Promise<Held> {
    const agent_name = this.#agent;
    const { data: challenge } = await this.#transport.ask(
      { method: 'POST', path: '/auth/challenge', body: { agent_name }, retry: 'always' },
      ANONYMOUS,
      decodeChallenge,
    );
    const { challenge_id, nonce } = challenge;
    const signature = toBase64(await this.#signer(toBytes(nonce)));
    const { data, sentAt, headers } = await this.#transport.ask(
      { method: 'POST', path: '/auth/verify', body: { challenge_id, agent_name, signature }, retry: 'never' },
      ANONYMOUS,
      decodeSession,
    );
    const { session_id, ...others } = data;
    this.#held = {
      session: { ...others, session_id: new Secret(session_id) },
      end: new Expiry(sentAt, estimateDurationMs(others.expires_at, sentAt, headers.get('date'))),
    };
    return this.#held;
  }
}

function toBytes(nonce: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(nonce);
  } catch {
    throw new LeaseholdError('INVALID_RESPONSE', 'the answer is not what a Leasehold answers: nonce is no base64');
  }
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
