/** From what was thrown to the answer: a fault keeps its code, the framework's own errors get ours, anything else is a bug. */
import { Fault, type FaultCode } from '../core/fault.ts';
import { isStoreFailure } from '../vault/storefailure.ts';

export interface ErrorAnswer {
  readonly status: number;
  readonly body: { readonly error: { readonly code: FaultCode; readonly message: string } };
  readonly headers: Readonly<Record<string, string>>;
}

export function toErrorAnswer(fault: Fault): ErrorAnswer {
  const headers: Record<string, string> = {};
  if (fault.status === 401) headers['www-authenticate'] = 'Bearer';
  if (fault.retryAfterSeconds !== null) headers['retry-after'] = String(fault.retryAfterSeconds);
  return { status: fault.status, body: { error: { code: fault.code, message: fault.message } }, headers };
}

const MESSAGES = {
  PAYLOAD_TOO_LARGE: 'The body is too large.',
  UNSUPPORTED_MEDIA_TYPE: 'The body must be application/json.',
  INVALID_REQUEST: 'The request is not well formed.',
  URI_TOO_LONG: 'The address is too long.',
  HEADERS_TOO_LARGE: 'The headers are too large.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  UNAVAILABLE: 'The service holds as many connections as it can. Try again in a second.',
} as const;

export function standardFault(code: keyof typeof MESSAGES): Fault {
  return new Fault(code, MESSAGES[code], code === 'UNAVAILABLE' ? 1 : null);
}

/** The fault that was meant, or null for a bug. */
export function toFault(error: unknown): Fault | null {
  if (error instanceof Fault) return error;
  if (isStoreFailure(error)) return new Fault('UNAVAILABLE', 'The storage does not answer. Try again in a second.', 1);
  if (error instanceof Error && 'validation' in error && Array.isArray(error.validation)) {
    return validationFault('query', error.validation[0], []);
  }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  if (status === 413) return standardFault('PAYLOAD_TOO_LARGE');
  if (status === 415) return standardFault('UNSUPPORTED_MEDIA_TYPE');
  if (status === 414) return standardFault('URI_TOO_LONG');
  if (typeof status === 'number' && status >= 400 && status < 500) return standardFault('INVALID_REQUEST');
  return null;
}

interface SchemaError {
  readonly instancePath?: string;
  readonly message?: string | undefined;
  readonly keyword?: string;
  readonly params?: Record<string, unknown>;
}

/** Names the field and the rule that a schema found broken; never a key or a value that was sent. */
export function validationFault(part: string, error: SchemaError | undefined, known: readonly string[]): Fault {
  const field = (error?.instancePath ?? '').split('/')[1] ?? part;
  if (error?.keyword === 'additionalProperties') {
    const names = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`;
    const noun = part === 'query' ? 'parameter' : 'field';
    return new Fault('INVALID_REQUEST', `${part}: has a ${noun} that does not exist; ${names}`);
  }
  if (error?.keyword === 'required') {
    return new Fault('INVALID_REQUEST', `${String(error.params?.['missingProperty'])}: is required`);
  }
  if (part === 'body' && (error?.instancePath ?? '') === '')
    return new Fault('INVALID_REQUEST', 'body: must be a JSON object');
  const rule = part === 'query' ? 'must be given once' : ruleOf(error);
  return new Fault('INVALID_REQUEST', `${field}: ${rule}`);
}

function ruleOf(error: SchemaError | undefined): string {
  if (error?.keyword === 'type') return TYPE_RULES.get(String(error.params?.['type'])) ?? 'is not valid';
  return error?.message ?? 'is not valid';
}

/** By the type that a schema asks for. */
const TYPE_RULES: ReadonlyMap<string, string> = new Map([
  ['string', 'must be a string'],
  ['integer', 'must be a whole number'],
  ['array', 'must be an array'],
]);
