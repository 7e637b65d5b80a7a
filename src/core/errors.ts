/**
 * The closed list of error codes. A fault is a refusal that a caller is told about; anything else that is thrown is a bug.
 * SOURCE: decisions, "HTTP"; `src/api/errors.ts` has each code's HTTP status. A message never repeats what was sent.
 */

export const API_ERROR_CODES = [
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'SESSION_EXPIRED',
  'AUTH_FAILED',
  'ACCESS_DENIED',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'ALREADY_EXISTS',
  'LEASE_ENDED',
  'PRECONDITION_FAILED',
  'PAYLOAD_TOO_LARGE',
  'URI_TOO_LONG',
  'UNSUPPORTED_MEDIA_TYPE',
  'MISDIRECTED_REQUEST',
  'RATE_LIMITED',
  'HEADERS_TOO_LARGE',
  'INTERNAL_ERROR',
  'INTEGRITY_FAILURE',
  'VAULT_LOCKED',
  'UNAVAILABLE',
] as const;

export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

/** A refusal as plain data, as a decision gives it. */
export interface ErrorInfo {
  readonly code: ApiErrorCode;
  readonly message: string;
}

/** A refusal with a code from the table. `retryAfterSeconds` goes with `RATE_LIMITED` and `UNAVAILABLE`. */
export class ApiError extends Error {
  readonly code: ApiErrorCode;
  readonly retryAfterSeconds: number | null;

  constructor(code: ApiErrorCode, message: string, retryAfterSeconds: number | null = null) {
    super(message);
    this.name = 'Fault';
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A 400 that names the field and the rule. */
export function invalidRequest(field: string, rule: string): ApiError {
  return new ApiError('INVALID_REQUEST', `${field}: ${rule}`);
}
