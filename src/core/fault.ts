/**
 * The one closed table of faults. A fault is a refusal that a caller is told about; anything else that is thrown is a bug.
 * SOURCE: decisions, "HTTP". A message never repeats what was sent.
 */

export const FAULTS = {
  INVALID_REQUEST: 400,
  UNAUTHENTICATED: 401,
  SESSION_EXPIRED: 401,
  AUTH_FAILED: 401,
  ACCESS_DENIED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  ALREADY_EXISTS: 409,
  LEASE_ENDED: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  URI_TOO_LONG: 414,
  UNSUPPORTED_MEDIA_TYPE: 415,
  MISDIRECTED_REQUEST: 421,
  RATE_LIMITED: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  INTEGRITY_FAILURE: 500,
  VAULT_LOCKED: 503,
  UNAVAILABLE: 503,
} as const;

export type FaultCode = keyof typeof FAULTS;

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

  get status(): number {
    return FAULTS[this.code];
  }
}

/** A 400 that names the field and the rule. */
export function invalid(field: string, rule: string): Fault {
  return new Fault('INVALID_REQUEST', `${field}: ${rule}`);
}
