/** What was answered, or why nothing was, in words and codes. A body that is no Leasehold's is never repeated. */
import { LeaseholdError } from './errors.ts';
import type { ErrorBody, Health } from './types.ts';

/** What proxies answer in place of a service that they do not reach. */
const OF_A_PROXY: ReadonlySet<number> = new Set([502, 503, 504]);

/** What the operating system or the runtime calls it. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : 'unknown reason';
}

/** Above the longest list; whoever answers more is no Leasehold, or means harm. */
const MOST_BYTES = 256 * 1024 * 1024;
/** Above a value of 256 KiB, however JSON escapes it. */
export const MOST_VALUE_BYTES = 4 * 1024 * 1024;
const MOST_ERROR_BYTES = 64 * 1024;

interface Read {
  readonly body: object;
  readonly bytes: number;
}

/** @throws LeaseholdError INVALID_RESPONSE, UNREACHABLE */
export async function readJson(response: Response, mostBytes = MOST_BYTES): Promise<Read> {
  const { text, bytes } = await readText(response, mostBytes);
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) return { body, bytes };
  } catch {
    // Told below.
  }
  throw notLeasehold(response);
}

async function readText(response: Response, mostBytes: number) {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new LeaseholdError('INVALID_RESPONSE', 'the answer is longer than any of a Leasehold');
    text += decoder.decode(chunk, { stream: true });
  }
  return { text: text + decoder.decode(), bytes };
}

export async function toError(response: Response): Promise<LeaseholdError> {
  const { status, type, headers } = response;
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    discard(response);
    return new LeaseholdError('INVALID_RESPONSE', 'what answered sends on to another address, which is not followed', {
      status,
    });
  }
  const { body } = await readJson(response, MOST_ERROR_BYTES);
  const { error, data } = body as Partial<ErrorBody & { data: Partial<Health> }>;
  const details = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds: Number(headers.get('retry-after')) || null,
  };
  if (typeof error?.code === 'string' && typeof error.message === 'string') {
    return new LeaseholdError(error.code, error.message, details);
  }
  // The answer of health where not all is well.
  if (typeof data?.status === 'string') {
    return new LeaseholdError('UNAVAILABLE', `the service says of itself: ${data.status}`, details);
  }
  throw notLeasehold(response);
}

/** Lets go of a body that nobody reads; one that broke off meanwhile does not matter. */
export function discard({ body }: Response): void {
  body?.cancel().catch(() => undefined);
}

/** A proxy's page, or another service. */
export function notLeasehold({ status }: Pick<Response, 'status'>): LeaseholdError {
  return OF_A_PROXY.has(status)
    ? new LeaseholdError('UNREACHABLE', `a proxy answered in place of the service (status ${status})`, { status })
    : new LeaseholdError('INVALID_RESPONSE', `what answered is no Leasehold (status ${status})`, { status });
}
