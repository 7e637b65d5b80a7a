/**
 * The closed list of error codes. A fault is a refusal that a caller is told about; anything else that is thrown is a bug.
 * SOURCE: decisions, "HTTP"; `src/api/errors.ts` has each code's HTTP status. A message never repeats what was sent.
 */

export const FAULT_CODES = [
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

export type FaultCode = (typeof FAULT_CODES)[number];

/** A refusal as plain data, as a decision gives it. */
export interface Refusal {
  readonly code: FaultCode;
  readonly message: string;
}

/** A refusal with a code from the table. `retryAfterSeconds` goes with `RATE_LIMITED` and `UNAVAILABLE`. */
export class Fault extends Error {
  readonly code: FaultCode;
  readonly retryAfterSeconds: number | null;

  constructor(code: FaultCode, message: string, retryAfterSeconds: number | null = null) {
    super(message);
    this.name = 'Fault';
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A 400 that names the field and the rule. */
export function invalid(field: string, rule: string): Fault {
  return new Fault('INVALID_REQUEST', `${field}: ${rule}`);
}
