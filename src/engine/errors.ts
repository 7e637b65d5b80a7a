/**
 * The closed list of error codes, and the error that carries one. An `ApiError` is sent to the caller; any other
 * exception is a bug. A message never repeats the caller's input. SOURCE: docs/api.md, "Errors";
 * `src/api/errors.ts` has the HTTP statuses.
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
  'UPSTREAM_FAILED',
  'APPROVAL_PENDING',
  'APPROVAL_DENIED',
  'APPROVAL_TIMED_OUT',
  'APPROVAL_WITHDRAWN',
  'APPROVAL_ENDED',
  'NO_APPROVER',
  'VAULT_LOCKED',
  'UNAVAILABLE',
] as const;

export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

/**
 * An error with a code of the list. Only `RATE_LIMITED`, `UNAVAILABLE` and `APPROVAL_PENDING` have `retryAfterSeconds`.
 */
export class ApiError extends Error {
  readonly code: ApiErrorCode;
  readonly retryAfterSeconds: number | null;
  readonly approvalId: string | null;

  constructor(
    code: ApiErrorCode,
    message: string,
    retryAfterSeconds: number | null = null,
    approvalId: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
    this.approvalId = approvalId;
  }
}

/**
 * A precondition that does not hold. `current` is what the request is about now; undefined for a caller who may not see
 * it.
 */
export class PreconditionFailed extends ApiError {
  readonly current: object | null | undefined;

  constructor(message: string, current: object | null | undefined) {
    super('PRECONDITION_FAILED', message);
    this.current = current;
  }
}

export function invalidRequest(field: string, rule: string): ApiError {
  return new ApiError('INVALID_REQUEST', `${field}: ${rule}`);
}

export function ruleBroken(parse: () => unknown): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}
