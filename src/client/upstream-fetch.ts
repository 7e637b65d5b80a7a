/**
 * `fetch` with a credential that the caller does not see. It accepts the arguments of `fetch` and returns a `Response`,
 * through one call of the server. Redirects are returned and not followed.
 */
import { LeaseholdError } from './errors.ts';
import type { UseRequest, UseResponse } from './types.ts';
import { decodeBody, encodeBody, MAX_USE_BODY_BYTES } from './use.ts';

export interface UseFetchInit extends RequestInit {
  readonly ttlSeconds?: number;
  readonly purpose?: string;
}

type Use = (request: UseRequest, options: { readonly signal: AbortSignal }) => Promise<UseResponse>;

/** @throws LeaseholdError for a rejection by the server; TypeError, like `fetch`, for a request that cannot exist */
export async function fetchUpstream(
  use: Use,
  path: string,
  input: string | URL | Request,
  { ttlSeconds, purpose, ...init }: UseFetchInit,
): Promise<Response> {
  const url = parseUrl(input instanceof Request ? input.url : String(input));
  const request = new Request(input, init);
  const reply = await use(
    {
      path,
      method: request.method,
      url,
      headers: Object.fromEntries(request.headers),
      ...encodeBody(new Uint8Array(await request.arrayBuffer())),
      ...(ttlSeconds === undefined ? {} : { ttl: ttlSeconds }),
      ...(purpose === undefined ? {} : { purpose }),
    },
    { signal: request.signal },
  );
  return toResponse(reply, request.method, url);
}

/** Drops the fragment, as `fetch` does. @throws LeaseholdError INVALID_REQUEST */
function parseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null) throw new LeaseholdError('INVALID_REQUEST', 'url: must be an absolute URL');
  // WHY checked here: the runtime's own error message would quote the password.
  if (url.username !== '' || url.password !== '') {
    throw new LeaseholdError('INVALID_REQUEST', 'url: must not contain a user or a password');
  }
  url.hash = '';
  return url.href;
}

/** SOURCE: Fetch, "null body status" */
const BODYLESS: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** @throws LeaseholdError INVALID_RESPONSE for a status or a header that a `Response` cannot have */
function toResponse(reply: UseResponse, method: string, url: string): Response {
  const { status, headers: fields } = reply;
  const bytes = decodeBody(reply);
  const content = method === 'HEAD' || BODYLESS.has(status) ? null : reply.truncated ? cutBody(bytes) : bytes;
  try {
    const headers = new Headers();
    for (const [name, values] of Object.entries(fields)) {
      for (const value of [values].flat()) headers.append(name, value);
    }
    // The same header as on the base URL.
    headers.set('x-leasehold-lease', reply.lease_id);
    const response = new Response(content, { status, headers });
    // WHY: the constructor has no option for it, and some programs read it.
    return Object.defineProperty(response, 'url', { value: url });
  } catch (error) {
    throw new LeaseholdError('INVALID_RESPONSE', 'the upstream sent a status or a header that fetch does not allow', {
      status,
      cause: error,
    });
  }
}

/** Yields the received bytes and then fails, so that no program uses a part as the whole. */
function cutBody(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
    },
    pull(controller) {
      const limit = `${MAX_USE_BODY_BYTES / 1024 ** 2} MiB`;
      const message = `the response of the upstream was cut at ${limit}, the limit of one call; use baseURL for longer ones`;
      controller.error(new LeaseholdError('TRUNCATED', message));
    },
  });
}
