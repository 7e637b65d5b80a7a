/**
 * Reads responses, and turns error responses into errors. Errors never quote the body of a server that is not
 * Leasehold.
 */
import type { Tagged } from './api-client.ts';
import { LeaseholdError } from './errors.ts';
import type { ErrorBody, Health } from './types.ts';

/** Statuses of proxies that cannot reach the server. */
const PROXY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Returns the error code of the system or the runtime, or else the message. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : 'unknown reason';
}

/** No response of the server exceeds this size. */
const MAX_BYTES = 256 * 1024 * 1024;
/** No response with a value of 256 KiB exceeds this size, however JSON escapes it. */
export const MAX_VALUE_BYTES = 4 * 1024 * 1024;
/** The largest resource that an error contains has 16 targets with certificates. */
const MAX_ERROR_BYTES = 2 * 1024 * 1024;

interface JsonBody {
  readonly body: object;
  readonly bytes: number;
}

/** @throws LeaseholdError INVALID_RESPONSE, UNREACHABLE */
export async function readJson(response: Response, maxBytes = MAX_BYTES): Promise<JsonBody> {
  const { text, bytes } = await readText(response, maxBytes);
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) return { body, bytes };
  } catch {
    // The error is reported below.
  }
  throw notLeasehold(response);
}

/** `fatal`: throws a TypeError for invalid UTF-8. @throws LeaseholdError INVALID_RESPONSE for a longer body */
export async function readText(response: Response, maxBytes: number, fatal = false) {
  const decoder = new TextDecoder('utf-8', { fatal });
  let text = '';
  let bytes = 0;
  // WHY not `for await`: Safari's streams are not iterable.
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    bytes += part.value.length;
    if (bytes > maxBytes) {
      reader?.cancel().catch(() => undefined);
      throw new LeaseholdError('INVALID_RESPONSE', `the response is longer than ${maxBytes} bytes`);
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return { text: text + decoder.decode(), bytes };
}

export async function toError(response: Response): Promise<LeaseholdError> {
  const { status, type, headers } = response;
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    discard(response);
    return new LeaseholdError('INVALID_RESPONSE', 'the server redirects to another URL; redirects are not followed', {
      status,
    });
  }
  const { body } = await readJson(response, MAX_ERROR_BYTES);
  const { error, data } = body as Partial<ErrorBody & { data: Partial<Health> }>;
  const details = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds: toSeconds(headers.get('retry-after')),
  };
  if (typeof error?.code === 'string' && typeof error.message === 'string') {
    const approvalId = error.approval_id ?? null;
    return new LeaseholdError(error.code, error.message, {
      ...details,
      approvalId,
      current: currentOf(error, headers),
    });
  }
  // A health response of a server that is not healthy.
  if (typeof data?.status === 'string') {
    return new LeaseholdError('UNAVAILABLE', `the server reports the status "${data.status}"`, details);
  }
  throw notLeasehold(response);
}

/** The resource on which the request's precondition failed. Undefined if the server does not show it. */
function currentOf({ current }: ErrorBody['error'], headers: Headers): Tagged<unknown> | null | undefined {
  const tag = headers.get('etag');
  return current == null ? current : tag === null ? undefined : { data: current, tag };
}

/** WHY only digits: a negative delay would end at once, and the call would be repeated without a pause. */
function toSeconds(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) || null : null;
}

/** Cancels a body that is not read. Errors are ignored. */
export function discard({ body }: Response): void {
  body?.cancel().catch(() => undefined);
}

/** Error for a response that is not from Leasehold. */
export function notLeasehold({ status }: Pick<Response, 'status'>): LeaseholdError {
  return PROXY_STATUSES.has(status)
    ? new LeaseholdError('UNREACHABLE', `a proxy responded instead of the server (HTTP ${status})`, { status })
    : new LeaseholdError('INVALID_RESPONSE', `the server at this address is not Leasehold (HTTP ${status})`, {
        status,
      });
}
