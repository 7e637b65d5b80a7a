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

/** @throws LeaseholdError BAD_ANSWER, NO_ANSWER */
export async function readJson(response: Response, mostBytes = MOST_BYTES): Promise<object> {
  const text = await readText(response, mostBytes);
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) return body;
  } catch {
    // Told below.
  }
  throw notLeasehold(response);
}

async function readText(response: Response, mostBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new LeaseholdError('BAD_ANSWER', 'the answer is longer than any of a Leasehold');
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Holds an answer to the texts that are relied on. @throws LeaseholdError BAD_ANSWER, which holds nothing of it */
export function assertTexts<T extends object>(data: T, fields: readonly (keyof T & string)[]): T {
  const isWhole = !Array.isArray(data) && fields.every((field) => typeof data[field] === 'string');
  if (!isWhole) throw new LeaseholdError('BAD_ANSWER', `the answer lacks a text: ${fields.join(', ')}`);
  return data;
}

export async function toError(response: Response): Promise<LeaseholdError> {
  const { status, type, headers } = response;
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    void response.body?.cancel();
    return new LeaseholdError('BAD_ANSWER', 'what answered sends on to another address, which is not followed', {
      status,
    });
  }
  const { error, data } = (await readJson(response, MOST_ERROR_BYTES)) as Partial<
    ErrorBody & { data: Partial<Health> }
  >;
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

/** A proxy's page, or another service. */
export function notLeasehold({ status }: Response): LeaseholdError {
  return OF_A_PROXY.has(status)
    ? new LeaseholdError('NO_ANSWER', `a proxy answered in place of the service (status ${status})`, { status })
    : new LeaseholdError('BAD_ANSWER', `what answered is no Leasehold (status ${status})`, { status });
}
