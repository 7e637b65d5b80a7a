/** Errors of the client, with a code for programs. */
import type { ApiErrorCode } from '../engine/errors.ts';
import type { Tagged } from './api-client.ts';

/**
 * `UNREACHABLE`: no connection, or it was lost. `TIMED_OUT`: no complete response in time. `INVALID_RESPONSE`: the
 * server is not Leasehold. `BAD_CERTIFICATE`: the server's certificate is not trusted; nothing was sent. `BAD_KEY`:
 * the agent's key cannot be read or cannot sign. `BAD_OPTIONS`: an option of the client is invalid. `TRUNCATED`: the
 * response of an upstream is longer than one call returns.
 */
export type ClientCode =
  | 'UNREACHABLE'
  | 'TIMED_OUT'
  | 'INVALID_RESPONSE'
  | 'BAD_CERTIFICATE'
  | 'BAD_KEY'
  | 'BAD_OPTIONS'
  | 'TRUNCATED';

/** Codes of the server and of the client; a newer server may use others. */
export type ErrorCode = ApiErrorCode | ClientCode | (string & {});

type Details = Partial<
  Pick<LeaseholdError, 'status' | 'requestId' | 'retryAfterSeconds' | 'approvalId' | 'current' | 'option' | 'cause'>
>;

/** Thrown by every call. The message never contains a value or a token. */
export class LeaseholdError extends Error {
  readonly code: ErrorCode;
  readonly status: number | null;
  /** Identifies the request in the server log and in the audit log. */
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  /** Set with the codes about an approval. */
  readonly approvalId: string | null;
  /**
   * With PRECONDITION_FAILED the resource as it is now, and null if it does not exist. Undefined with other codes, and
   * for agents.
   */
  readonly current: Tagged<unknown> | null | undefined;
  /** Set with BAD_OPTIONS: the invalid option, if it is a single one. */
  readonly option: string | null;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    const {
      status = null,
      requestId = null,
      retryAfterSeconds = null,
      approvalId = null,
      current,
      option = null,
      cause,
    } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LeaseholdError';
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
    this.approvalId = approvalId;
    this.current = current;
    this.option = option;
  }
}

/** `rule` completes the sentence "The option …". */
export function badOption(option: string, rule: string): LeaseholdError {
  return new LeaseholdError('BAD_OPTIONS', `${option}: ${rule}`, { option });
}

/** Whether a call failed because the lease has ended or is not visible to the caller. */
export function isEndedLease(error: unknown): boolean {
  return error instanceof LeaseholdError && (error.code === 'LEASE_ENDED' || error.code === 'NOT_FOUND');
}
