/** One request and its answer: who asks, how long it may take, and whether it is tried again. */

import type { AuthProvider } from './auth-provider.ts';
import { certificateFault } from './certificates.ts';
import type { Decoder } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
import { type ClockReading, now } from './expiry.ts';
import { discard, notLeasehold, readJson, reasonOf, toError } from './responses.ts';
import { backoffMs, mayHaveSucceeded, pause } from './retries.ts';

export interface RequestSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: object;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Which failed tries are repeated. `never`: the operation is not idempotent. `always`: it is. `idempotency-key`: the client sends an
   * Idempotency-Key, which makes it so. `if-not-applied`: only when the first try certainly had no effect, because a second one could
   * undo another caller's change.
   */
  readonly retry: 'never' | 'always' | 'idempotency-key' | 'if-not-applied';
  readonly signal?: AbortSignal | undefined;
  /** Of the answer, where it is short by its nature. */
  readonly mostBytes?: number;
}

export interface ApiResponse<T> {
  readonly data: T;
  /** Beside the lists, as it came; undefined elsewhere. */
  readonly meta: unknown;
  /** Of the whole answer. */
  readonly bytes: number;
  readonly headers: Headers;
  readonly sentAt: ClockReading;
}

export interface TransportParts {
  /** Without a slash at its end. */
  readonly base: string;
  readonly fetch: typeof fetch;
  /** Of each try. */
  readonly timeoutMs: number;
  /** Beside the first. */
  readonly retries: number;
}

export class Transport {
  readonly #parts: TransportParts;

  constructor(parts: TransportParts) {
    this.#parts = parts;
  }

  /** Resolves to what was answered. @throws LeaseholdError, the signal's reason */
  async ask<T>(spec: RequestSpec, caller: AuthProvider, decode: Decoder<T>): Promise<ApiResponse<T>> {
    return this.#withRetries(spec, caller, async (response, sentAt) => {
      const { body, bytes } = await readJson(response, spec.mostBytes);
      if (!('data' in body) || typeof body.data !== 'object' || body.data === null) throw notLeasehold(response);
      const meta = 'meta' in body ? body.meta : undefined;
      return { data: decode(body.data), meta, bytes, headers: response.headers, sentAt };
    });
  }

  /** For what is answered with nothing but its success. @throws LeaseholdError, the signal's reason */
  remove(spec: RequestSpec & { readonly method: 'DELETE' }, caller: AuthProvider): Promise<void> {
    const read = async (response: Response): Promise<void> => {
      if (response.status === 204) return;
      discard(response);
      throw notLeasehold(response);
    };
    return this.#withRetries(spec, caller, read, () => undefined);
  }

  /** Resolves to the answer before its body has come; only what comes before that is tried again, and timed. */
  stream(spec: RequestSpec, caller: AuthProvider): Promise<Response> {
    return this.#withRetries(spec, caller, (response) => Promise.resolve(response));
  }

  async #withRetries<T>(
    spec: RequestSpec,
    caller: AuthProvider,
    read: (response: Response, sentAt: ClockReading) => Promise<T>,
    onAlreadyGone: (() => T) | null = null,
  ): Promise<T> {
    const { signal = new AbortController().signal } = spec;
    const headers = spec.retry === 'idempotency-key' ? { 'idempotency-key': crypto.randomUUID() } : {};
    let mayBeDone = false;
    let isRenewed = false;
    for (let tried = 1; ; tried++) {
      let token: string | null = null;
      let isSent = false;
      try {
        signal.throwIfAborted();
        token = await caller.token(signal);
        isSent = true;
        return await this.#send(spec, { ...headers, ...spec.headers }, token, read);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (!(error instanceof LeaseholdError)) throw error;
        // What was deleted by a try that nobody answered is not there for the next one.
        if (mayBeDone && onAlreadyGone !== null && error.code === 'NOT_FOUND') return onAlreadyGone();
        if (error.status === 401 && token !== null && !isRenewed && caller.invalidate(token)) {
          isRenewed = true;
          tried -= 1; // it was refused before anything was done
          continue;
        }
        const isRisky = spec.retry === 'never' || (spec.retry === 'if-not-applied' && mayHaveSucceeded(error));
        const wait = isSent && isRisky ? null : backoffMs(tried, error);
        if (wait === null || tried > this.#parts.retries) throw error;
        // Without a token nothing was sent: it was the login that failed.
        mayBeDone ||= isSent && mayHaveSucceeded(error);
        await pause(wait, signal);
      }
    }
  }

  async #send<T>(
    spec: RequestSpec,
    headers: Readonly<Record<string, string>>,
    token: string | null,
    read: (response: Response, sentAt: ClockReading) => Promise<T>,
  ): Promise<T> {
    const { method, path, query = {}, body, signal } = spec;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), this.#parts.timeoutMs);
    const sentAt = now();
    // WHY a variable: in browsers fetch refuses to be called as somebody's method.
    const { fetch } = this.#parts;
    try {
      const response = await fetch(`${this.#parts.base}${path}${toQuery(query)}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
        // Somebody else's address must not get the token.
        redirect: 'manual',
        credentials: 'omit',
        cache: 'no-store',
      });
      if (!response.ok) throw await toError(response);
      return await read(response, sentAt);
    } catch (error) {
      if (error instanceof LeaseholdError) throw error;
      if (timeout.signal.aborted) {
        const seconds = this.#parts.timeoutMs / 1000;
        throw new LeaseholdError('TIMED_OUT', `no answer from ${this.#parts.base} within ${seconds} s`);
      }
      const reason = reasonOf(error);
      const fault = certificateFault(reason);
      if (fault !== null) {
        const message = `the certificate of ${this.#parts.base} ${fault} (${reason})`;
        throw new LeaseholdError('BAD_CERTIFICATE', message, { cause: error });
      }
      throw new LeaseholdError('UNREACHABLE', `no answer from ${this.#parts.base} (${reason})`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function toQuery(query: object): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
