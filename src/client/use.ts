/**
 * Brokered requests: the server makes a request with a value that the caller does not see, and returns the response.
 * Targets determine the allowed destinations, and use leases have tokens for base URLs. SOURCE: docs/api.md, "Targets",
 * "Brokered use".
 */
import { pathViolation } from '../core/path.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { MAX_TARGETS } from '../vault/use/target.ts';
import {
  type ApiClient,
  type CallOptions,
  Calls,
  type PutOptions,
  type ReplaceOptions,
  type Tagged,
  toSegments,
} from './api-client.ts';
import { badOption, LeaseholdError } from './errors.ts';
import { fromBase64, toBase64 } from './signers.ts';
import type {
  AgentUseLease,
  CredentialTargets,
  PutTargetsRequest,
  UseLeaseRequest,
  UseLeaseWire,
  UseRequest,
  UseResponse,
} from './types.ts';

/** Longer than the server waits for the head of an upstream's response. */
export const USE_TIMEOUT_MS = 660_000;
/** Limit for the body of the upstream's response; the server truncates the rest. */
const MAX_USE_BODY_BYTES = 2 * 1024 * 1024;
/** No response exceeds this size, however JSON escapes the body. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Methods that change nothing at the upstream, so that they can be repeated. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

export async function use(
  api: ApiClient,
  timeoutMs: number,
  body: UseRequest,
  { signal }: CallOptions,
): Promise<UseResponse> {
  const retry = SAFE_METHODS.has(body.method) ? 'always' : 'if-not-applied';
  const maxBytes = MAX_RESPONSE_BYTES;
  const spec = { method: 'POST', path: '/api/v1/use', body, retry, signal, maxBytes, timeoutMs } as const;
  return (await api.ask<UseResponse>(spec)).data;
}

/** The body of a request to the upstream, as text if it is UTF-8. */
export function encodeBody(bytes: Uint8Array): Pick<UseRequest, 'body' | 'body_encoding'> {
  if (bytes.length === 0) return {};
  try {
    return { body: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), body_encoding: 'utf8' };
  } catch {
    return { body: toBase64(bytes), body_encoding: 'base64' };
  }
}

/** The bytes that the upstream sent. @throws LeaseholdError INVALID_RESPONSE */
export function decodeBody({ body, body_encoding }: UseResponse): Uint8Array<ArrayBuffer> {
  if (body_encoding === 'utf8') return new TextEncoder().encode(body);
  try {
    if (body_encoding === 'base64') return fromBase64(body);
  } catch {
    // The error is reported below.
  }
  throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: body must be utf8 or base64');
}

/**
 * The URL that replaces the origin of one of the credential's targets, counted from 1; without a number, of the first
 * target that a request matches. The server reads the path as it is sent, so nothing in it is encoded. @throws
 * LeaseholdError INVALID_REQUEST, BAD_OPTIONS
 */
export function toBaseUrl(address: string, path: string, target: number | null): string {
  const rule = path.split('/').some((segment) => /^-\d{0,3}$/.test(segment)) ? SELECTOR_RULE : pathViolation(path);
  if (rule !== null) throw new LeaseholdError('INVALID_REQUEST', `path: ${rule}`);
  if (target !== null && !(Number.isInteger(target) && target >= 1 && target <= MAX_TARGETS)) {
    throw badOption('target', `must be an integer from 1 to ${MAX_TARGETS}`);
  }
  return `${address}/use/${path}/-${target ?? ''}`;
}

const SELECTOR_RULE = 'must not have a segment such as - or -1, which ends the path in a base URL';

export class Targets extends Calls {
  /** Sets or replaces the targets and the placement. Ends the credential's use leases. */
  put(path: string, body: PutTargetsRequest, options: PutOptions = {}): Promise<CredentialTargets> {
    return this.api.put(addressOf(path), body, options);
  }

  /** @throws LeaseholdError NOT_FOUND if there are no targets, … */
  async read(path: string, options: CallOptions = {}): Promise<CredentialTargets> {
    return this.api.read(addressOf(path), {}, options);
  }

  readTagged(path: string, options: CallOptions = {}): Promise<Tagged<CredentialTargets>> {
    return this.api.readTagged(addressOf(path), options);
  }

  /** Deletes the targets, and ends the credential's use leases. The credential can then not be used. */
  async delete(path: string, options: ReplaceOptions = {}): Promise<void> {
    return this.api.remove(addressOf(path), options, 'name');
  }
}

const addressOf = (path: string): string => `/api/v1/targets/${toSegments(path)}`;

/** Calls on use leases, whose tokens are accepted only at base URLs. */
export class UseLeases extends Calls {
  /**
   * Issues the agent a lease with a token that an SDK sends as its API key to the base URL. `leases.revoke` revokes it.
   * The server keeps no response with a token, so a lost one is not retried. @throws LeaseholdError ACCESS_DENIED,
   * NOT_FOUND, …
   */
  async issue(body: UseLeaseRequest, options: CallOptions = {}): Promise<AgentUseLease> {
    const issuing = this.api.post<UseLeaseWire>('/api/v1/leases/use', body, options, 'if-not-applied');
    const { token, env, ...lease } = await issuing;
    const variables = Object.entries(env).map(([name, value]) => [name, new Secret(value)] as const);
    return { ...lease, token: new Secret(token), env: Object.fromEntries(variables) };
  }
}

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
  const content = method === 'HEAD' || BODYLESS.has(status) ? null : reply.truncated ? truncatedBody(bytes) : bytes;
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
function truncatedBody(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
    },
    pull(controller) {
      const limit = `${MAX_USE_BODY_BYTES / 1024 ** 2} MiB`;
      const message = `the response of the upstream was truncated at ${limit}, the limit of one call; use baseURL for longer ones`;
      controller.error(new LeaseholdError('TRUNCATED', message));
    },
  });
}
