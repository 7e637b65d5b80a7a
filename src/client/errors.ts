/** What goes wrong in a call, with a code to act on. */
import type { ApiErrorCode } from '../core/errors.ts';

/**
 * `UNREACHABLE`: the service was not reached, or the connection was lost. `TIMED_OUT`: it took too long. `INVALID_RESPONSE`: what answered
 * is no Leasehold. `BAD_CERTIFICATE`: the service's certificate is not trusted, and nothing was sent. `BAD_KEY`: the agent's key can't be
 * read or can't sign. `BAD_OPTIONS`: the client was given what it can't use.
 */
export type ClientCode =
  | 'UNREACHABLE'
  | 'TIMED_OUT'
  | 'INVALID_RESPONSE'
  | 'BAD_CERTIFICATE'
  | 'BAD_KEY'
  | 'BAD_OPTIONS';

/** The service's own codes, and the client's; a newer service may have more. */
export type ErrorCode = ApiErrorCode | ClientCode | (string & {});

interface Details {
  /** Of the answer; null without one. */
  readonly status?: number;
  /** By which the service's log and the audit log call the request. */
  readonly requestId?: string | null;
  readonly retryAfterSeconds?: number | null;
  /** The one of the client's that was mistaken, with BAD_OPTIONS. */
  readonly option?: string;
  readonly cause?: unknown;
}

/** Thrown by every call. A message never holds a value or a token. */
export class LeaseholdError extends Error {
  readonly code: ErrorCode;
  readonly status: number | null;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  /** With BAD_OPTIONS, the option that was mistaken, where it is one alone. */
  readonly option: string | null;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    const { status, requestId, retryAfterSeconds, option, cause } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LeaseholdError';
    this.code = code;
    this.status = status ?? null;
    this.requestId = requestId ?? null;
    this.retryAfterSeconds = retryAfterSeconds ?? null;
    this.option = option ?? null;
  }
}

/** The client was given an option that it cannot use; `rule` says what it must be. */
export function badOption(option: string, rule: string): LeaseholdError {
  return new LeaseholdError('BAD_OPTIONS', `${option}: ${rule}`, { option });
}

/** Whether the lease that was asked for is over, or was never there for whoever asks. */
export function isEndedLease(error: unknown): boolean {
  return error instanceof LeaseholdError && (error.code === 'LEASE_ENDED' || error.code === 'NOT_FOUND');
}
