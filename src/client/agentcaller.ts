/** An agent that asks: it logs in when it has to, and again before its session ends or when that was ended. */
import { Secret } from '../core/secret.ts';
import { fromBase64, toBase64 } from './base64.ts';
import { type Caller, NOBODY } from './caller.ts';
import { End } from './ends.ts';
import type { Signer } from './signers.ts';
import type { Answered, Transport } from './transport.ts';
import type { Challenge, Session, SessionText } from './types.ts';

/** Of a session's time: what is left when the next one is fetched, so that none ends under way. */
const RENEWED_WITH_LEFT_MS = 60_000;

interface Held {
  readonly session: Session;
  readonly end: End;
}

export class AgentCaller implements Caller {
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
    if (this.#held !== null && this.#held.end.left() > RENEWED_WITH_LEFT_MS) return this.#held.session;
    return (await this.#share(signal)).session;
  }

  async renew(refused: string | null, signal: AbortSignal): Promise<boolean> {
    // Null: it was the login itself that was refused.
    if (refused === null) return false;
    if (this.#held?.session.session_id.reveal() === refused) this.#held = null;
    if (this.#held === null) await this.#share(signal);
    return true;
  }

  get isLoggedIn(): boolean {
    return this.#held !== null && this.#held.end.left() > 0;
  }

  /** The next call begins a new session. */
  forget(): void {
    this.#held = null;
  }

  /** Who leaves early leaves the login to those who stay. */
  #share(signal: AbortSignal): Promise<Held> {
    this.#login ??= this.#logIn().finally(() => {
      this.#login = null;
    });
    return abortable(this.#login, signal);
  }

  async #logIn(): Promise<Held> {
    const agent_name = this.#agent;
    const { data: challenge } = await this.#transport.ask<Challenge>(
      { method: 'POST', path: '/auth/challenge', body: { agent_name }, repeats: 'freely' },
      NOBODY,
    );
    const signature = toBase64(await this.#signer(fromBase64(challenge.nonce)));
    const { challenge_id } = challenge;
    const answered: Answered<SessionText> = await this.#transport.ask(
      { method: 'POST', path: '/auth/verify', body: { challenge_id, agent_name, signature }, repeats: 'once' },
      NOBODY,
    );
    const { session_id, ...others } = answered.data;
    this.#held = {
      session: { ...others, session_id: new Secret(session_id) },
      end: new End(others.expires_at, answered.asked, answered.headers.get('date')),
    };
    return this.#held;
  }
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
