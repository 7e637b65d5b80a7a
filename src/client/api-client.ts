/** The transport with one caller's authentication, shared by all groups of calls. */
import { LeaseholdError } from './errors.ts';
import type { ApiResponse, AuthProvider, RequestSpec, Transport } from './transport.ts';
import type { Meta, Page } from './types.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface ReplaceOptions extends CallOptions {
  /** The tag with which the resource was read. PRECONDITION_FAILED if it has another tag now, or was deleted. */
  readonly ifMatch?: string;
}

export interface PutOptions extends ReplaceOptions {
  /** Fails with PRECONDITION_FAILED if the resource exists. */
  readonly onlyIfNew?: boolean;
}

export interface Tagged<T> {
  readonly data: T;
  readonly tag: string;
}

export interface ListAllOptions extends CallOptions {
  /** Limit for all pages together; by default 1 GiB, a few million rows. */
  readonly maxBytes?: number;
}

/** SOURCE: docs/decisions.md, "Lists". */
export const MAX_PAGE_ROWS = 1000;
const MAX_LIST_BYTES = 1024 ** 3;
/**
 * Allowed growth of a list while it is read, in addition to its doubling: thousands of leases a second may be issued.
 */
const MAX_NEW_ROWS = 100_000;

export class ApiClient {
  readonly #transport: Transport;
  readonly caller: AuthProvider;

  constructor(transport: Transport, caller: AuthProvider) {
    this.#transport = transport;
    this.caller = caller;
  }

  ask<T>(spec: RequestSpec): Promise<ApiResponse<T>> {
    return this.#transport.ask<T>(spec, this.caller);
  }

  stream(spec: RequestSpec): Promise<Response> {
    return this.#transport.stream(spec, this.caller);
  }

  async read<T>(
    path: string,
    query: object,
    { signal, timeoutMs }: CallOptions & Pick<RequestSpec, 'timeoutMs'>,
  ): Promise<T> {
    const limits = timeoutMs === undefined ? {} : { timeoutMs };
    return (await this.ask<T>({ method: 'GET', path, query, retry: 'always', signal, ...limits })).data;
  }

  /** Reads a resource with its entity tag. @throws LeaseholdError INVALID_RESPONSE if the response has no tag */
  async readTagged<T>(path: string, { signal }: CallOptions, query: object = {}): Promise<Tagged<T>> {
    const { data, headers } = await this.ask<T>({ method: 'GET', path, query, retry: 'always', signal });
    const tag = headers.get('etag');
    if (tag === null) throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: it has no ETag');
    return { data, tag };
  }

  /** WHY not repeated after a lost response: a second try could undo another caller's change. */
  async put<T>(path: string, body: object, options: PutOptions): Promise<T> {
    const { signal } = options;
    const headers = preconditionHeaders(options);
    return (await this.ask<T>({ method: 'PUT', path, body, headers, retry: 'if-not-applied', signal })).data;
  }

  /** One page of a list. Without `limit` the server returns the whole list. */
  async page<T>(path: string, query: { readonly limit?: number | undefined }, options: CallOptions): Promise<Page<T>> {
    const { data, meta } = await this.#askPage<T>(path, query, options);
    return { data, meta };
  }

  /**
   * The whole list, page by page, so that neither side keeps more than one page in memory. INVARIANT: terminates
   * whatever the server returns. It stops at `maxBytes`, or once there are more rows than existed at first plus those
   * that can have been added since.
   */
  async *pages<T>(path: string, query: object, options: ListAllOptions): AsyncGenerator<T> {
    const { maxBytes = MAX_LIST_BYTES } = options;
    let [readBytes, maxRows] = [0, Number.POSITIVE_INFINITY];
    for (let offset = 0; ; offset += MAX_PAGE_ROWS) {
      const page = { ...query, limit: MAX_PAGE_ROWS, offset };
      const { data, meta, bytes } = await this.#askPage<T>(path, page, options);
      if (offset === 0) maxRows = 2 * meta.total + MAX_NEW_ROWS;
      readBytes += bytes;
      if (offset + data.length > maxRows) throw new LeaseholdError('INVALID_RESPONSE', 'the list does not end');
      if (readBytes > maxBytes) {
        throw new LeaseholdError('INVALID_RESPONSE', `the list is longer than the limit of ${maxBytes} bytes`);
      }
      yield* data;
      if (data.length < MAX_PAGE_ROWS) return;
    }
  }

  async #askPage<T>(path: string, query: { readonly limit?: number | undefined }, { signal }: CallOptions) {
    const spec = { method: 'GET', path, query, retry: 'always', signal } as const;
    const { data, meta, bytes } = await this.ask<T[]>(spec);
    if (!Array.isArray(data)) throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: it has no list');
    if (data.length > (query.limit ?? Number.POSITIVE_INFINITY)) {
      throw new LeaseholdError('INVALID_RESPONSE', 'the page has more rows than requested');
    }
    const whole: Meta = { total: data.length, limit: data.length, offset: 0 };
    // WHY checked: `pages` would not terminate without a total.
    if (meta !== undefined && !Number.isSafeInteger(meta?.total)) {
      throw new LeaseholdError('INVALID_RESPONSE', 'the response is invalid: the list has no total');
    }
    return { data, meta: meta ?? whole, bytes };
  }

  async post<T>(
    path: string,
    body: object | undefined,
    { signal }: CallOptions,
    retry: RequestSpec['retry'] = 'idempotency-key',
  ): Promise<T> {
    return (await this.ask<T>({ method: 'POST', path, body, retry, signal })).data;
  }

  /** `by`: a deleted name may be reused before a retry, but an id may not. */
  async remove(path: string, options: ReplaceOptions, by: 'name' | 'id'): Promise<void> {
    const { signal } = options;
    const retry = by === 'id' ? 'always' : 'if-not-applied';
    await this.#transport.remove(
      { method: 'DELETE', path, headers: preconditionHeaders(options), retry, signal },
      this.caller,
    );
  }
}

/** A group of calls. */
export class Calls {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** WHY not a field: printing an object shows its fields. */
  protected get api(): ApiClient {
    return this.#api;
  }
}

function preconditionHeaders({ ifMatch, onlyIfNew = false }: PutOptions): Readonly<Record<string, string>> {
  return { ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }), ...(onlyIfNew ? { 'if-none-match': '*' } : {}) };
}

/**
 * Encodes a name or an id as a segment of a URL's path. URL parsers resolve `.` and `..`, so such a name would select
 * another route. @throws LeaseholdError INVALID_REQUEST
 */
export function toSegment(name: string, field: string): string {
  if (name === '' || name === '.' || name === '..' || !name.isWellFormed()) {
    throw new LeaseholdError('INVALID_REQUEST', `${field}: must not be empty, "." or ".."`);
  }
  return encodeURIComponent(name);
}

/** Encodes each segment of a path separately. @throws LeaseholdError INVALID_REQUEST */
export function toSegments(path: string): string {
  return path
    .split('/')
    .map((segment) => toSegment(segment, 'path: a segment'))
    .join('/');
}
