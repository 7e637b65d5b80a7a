/** Sends requests with authentication, a timeout and retries. */

import { LeaseholdError } from './errors.ts';
import { type ClockReading, now } from './expiry.ts';
import { discard, notLeasehold, readJson, reasonOf, toError } from './read-response.ts';
import { backoffMs, mayHaveSucceeded, pause } from './retries.ts';
import type { Meta } from './types.ts';

/** SOURCE: Node, tls, "X509 certificate error codes" */
const CERTIFICATE_FAULT =
  /^(?:ERR_TLS_CERT|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_|INVALID_(?:CA|PURPOSE))[A-Z_]*$/;

export interface AuthProvider {
  /** The bearer token of a request; null for an anonymous one. @throws LeaseholdError */
  token(signal: AbortSignal): Promise<string | null>;
  /**
   * The part of a browser's session that is not in its cookie; null without a session. A provider with this function
   * returns no token: the browser sends the cookie, and only to the origin of the page.
   */
  sessionPart?(): string | null;
  /** Reports a rejected token. Returns whether `token` may return another one now. */
  invalidate(rejected: string): boolean;
}

export interface RequestSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: object;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Which failed tries are repeated. `never`: the operation is not idempotent. `always`: it is idempotent.
   * `idempotency-key`: the client sends an Idempotency-Key, which makes it idempotent. `if-not-applied`: only if the
   * first try certainly had no effect, because a second one could undo another caller's change.
   */
  readonly retry: 'never' | 'always' | 'idempotency-key' | 'if-not-applied';
  readonly signal?: AbortSignal | undefined;
  /** Whether a browser accepts a cookie from the response; by default only if the caller has a browser session. */
  readonly credentials?: 'same-origin';
  readonly maxBytes?: number;
  /** The time-out of each try; by default the client's. */
  readonly timeoutMs?: number;
}

export interface ApiResponse<T> {
  readonly data: T;
  readonly meta: Meta | undefined;
  readonly bytes: number;
  readonly headers: Headers;
  readonly sentAt: ClockReading;
}

export interface TransportParts {
  /** The base URL without a trailing slash. */
  readonly base: string;
  readonly fetch: typeof fetch;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly approvalRetries: number;
  readonly onApprovalPending: ((approvalId: string) => void) | undefined;
}

export class Transport {
  readonly #parts: TransportParts;

  constructor(parts: TransportParts) {
    this.#parts = parts;
  }

  /**
   * Resolves to the response. `data` must be a record with fields, or a list of records. Names and types of fields are
   * not checked. @throws LeaseholdError, the signal's reason
   */
  async ask<T>(spec: RequestSpec, caller: AuthProvider): Promise<ApiResponse<T>> {
    return this.#withRetries(spec, caller, async (response, sentAt) => {
      const { body, bytes } = await readJson(response, spec.maxBytes);
      if (!('data' in body) || !isRecordOrList(body.data)) throw notLeasehold(response);
      const { data, meta } = body as { readonly data: T; readonly meta?: Meta };
      return { data, meta, bytes, headers: response.headers, sentAt };
    });
  }

  /** Sends a deletion, which the server confirms with 204. @throws LeaseholdError, the signal's reason */
  remove(spec: RequestSpec & { readonly method: 'DELETE' }, caller: AuthProvider): Promise<void> {
    const read = async (response: Response): Promise<void> => {
      if (response.status === 204) return;
      discard(response);
      throw notLeasehold(response);
    };
    return this.#withRetries(spec, caller, read, () => undefined);
  }

  /** Resolves when the headers have arrived; timeout and retries end there. */
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
    let mayBeApplied = false;
    let hasNewToken = false;
    let pendingTries = 0;
    for (let attempt = 1; ; attempt++) {
      let token: string | null = null;
      let isSent = false;
      try {
        signal.throwIfAborted();
        token = await caller.token(signal);
        isSent = true;
        const authentication = toAuthentication(caller, token);
        return await this.#send(spec, { ...headers, ...authentication.headers, ...spec.headers }, authentication, read);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (!(error instanceof LeaseholdError)) throw error;
        // A previous try, whose response was lost, may have deleted it.
        if (mayBeApplied && onAlreadyGone !== null && error.code === 'NOT_FOUND') return onAlreadyGone();
        if (error.status === 401 && token !== null && !hasNewToken && caller.invalidate(token)) {
          hasNewToken = true;
          attempt -= 1; // rejected before it took effect
          continue;
        }
        if (error.code === 'APPROVAL_PENDING') {
          // WHY for every call: a pending call has no effect, and the same request waits for the same approval again.
          const wait = this.#pauseForApproval(++pendingTries, error);
          if (wait === null) throw error;
          attempt = 0; // the server responded
          await pause(wait, signal);
          continue;
        }
        const isRisky = spec.retry === 'never' || (spec.retry === 'if-not-applied' && mayHaveSucceeded(error));
        const wait = isSent && isRisky ? null : backoffMs(attempt, error);
        if (wait === null || attempt > this.#parts.retries) throw error;
        // `isSent` is false if the login failed.
        mayBeApplied ||= isSent && mayHaveSucceeded(error);
        await pause(wait, signal);
      }
    }
  }

  /** The pause before the next try; null once the tries are used up. */
  #pauseForApproval(tries: number, error: LeaseholdError): number | null {
    const { approvalRetries, onApprovalPending } = this.#parts;
    if (error.approvalId !== null) onApprovalPending?.(error.approvalId);
    return tries > approvalRetries ? null : backoffMs(1, error);
  }

  async #send<T>(
    spec: RequestSpec,
    headers: Readonly<Record<string, string>>,
    { credentials }: Pick<Authentication, 'credentials'>,
    read: (response: Response, sentAt: ClockReading) => Promise<T>,
  ): Promise<T> {
    const { method, path, query = {}, body, signal, timeoutMs = this.#parts.timeoutMs } = spec;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    const sentAt = now();
    // WHY a variable: in browsers `fetch` must not be called as a method.
    const { fetch } = this.#parts;
    try {
      const response = await fetch(`${this.#parts.base}${path}${toQuery(query)}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
        // WHY: the target of a redirect must not receive the token.
        redirect: 'manual',
        credentials: spec.credentials ?? credentials,
        cache: 'no-store',
      });
      if (!response.ok) throw await toError(response);
      return await read(response, sentAt);
    } catch (error) {
      if (error instanceof LeaseholdError) throw error;
      if (timeout.signal.aborted) {
        throw new LeaseholdError('TIMED_OUT', `no response from ${this.#parts.base} within ${timeoutMs / 1000} s`);
      }
      const reason = reasonOf(error);
      if (CERTIFICATE_FAULT.test(reason)) {
        const message = `the certificate of ${this.#parts.base} is not trusted (${reason})`;
        throw new LeaseholdError('BAD_CERTIFICATE', message, { cause: error });
      }
      throw new LeaseholdError('UNREACHABLE', `no response from ${this.#parts.base} (${reason})`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

interface Authentication {
  readonly headers: Readonly<Record<string, string>>;
  readonly credentials: 'omit' | 'same-origin';
}

function toAuthentication(caller: AuthProvider, token: string | null): Authentication {
  if (token !== null) return { headers: { authorization: `Bearer ${token}` }, credentials: 'omit' };
  if (caller.sessionPart === undefined) return { headers: {}, credentials: 'omit' };
  const part = caller.sessionPart();
  return { headers: part === null ? {} : { 'x-leasehold-session-part': part }, credentials: 'same-origin' };
}

function toQuery(query: object): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

/**
 * WHY no fields are checked: the server's responses have the client's types, and another program's response has neither
 * form.
 */
function isRecordOrList(data: unknown): boolean {
  const isRecord = (one: unknown): boolean =>
    typeof one === 'object' && one !== null && !Array.isArray(one) && Object.keys(one).length > 0;
  return Array.isArray(data) ? data.every(isRecord) : isRecord(data);
}
