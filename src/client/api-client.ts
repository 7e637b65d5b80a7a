/** What every group of calls has: the way to the service, and who asks. */
import type { AuthProvider } from './auth-provider.ts';
import { type Decoder, decodeMeta, listOf } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
import type { ApiResponse, RequestSpec, Transport } from './transport.ts';
import type { Meta, Page } from './types.ts';

/** Of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Of a call that goes through a whole list. */
export interface ListAllOptions extends CallOptions {
  /** Of all pages together; 1 GiB, some millions of rows, where it is left out. */
  readonly mostBytes?: number;
}

/** SOURCE: decisions, "Lists": the largest limit. */
export const MOST_ON_A_PAGE = 1000;
const MOST_LISTED_BYTES = 1024 ** 3;
/** Less than any row of any list has, by the names of its fields alone. */
const LEAST_OF_A_ROW_BYTES = 50;
/** Beside as many again as there were: leases come by thousands a second while their list is read. */
const MOST_COMING_MEANWHILE = 100_000;

export class ApiClient {
  readonly #transport: Transport;
  readonly caller: AuthProvider;

  constructor(transport: Transport, caller: AuthProvider) {
    this.#transport = transport;
    this.caller = caller;
  }

  ask<T>(spec: RequestSpec, decode: Decoder<T>): Promise<ApiResponse<T>> {
    return this.#transport.ask(spec, this.caller, decode);
  }

  stream(spec: RequestSpec): Promise<Response> {
    return this.#transport.stream(spec, this.caller);
  }

  async read<T>(path: string, query: object, decode: Decoder<T>, { signal }: CallOptions): Promise<T> {
    return (await this.ask({ method: 'GET', path, query, retry: 'always', signal }, decode)).data;
  }

  /** A page of a list; without limit the service answers all, and then there are as many as there are. */
  async page<T>(
    path: string,
    query: { readonly limit?: number },
    decode: Decoder<T>,
    options: CallOptions,
  ): Promise<Page<T>> {
    const { data, meta } = await this.#askPage(path, query, decode, options);
    return { data, meta };
  }

  /**
   * All of a list, page by page, so that neither side holds more than one. INVARIANT: whatever answers, it ends: at `mostBytes`, and
   * before that where there is more than there was at the beginning and can have come meanwhile.
   */
  async *pages<T>(path: string, query: object, decode: Decoder<T>, options: ListAllOptions): AsyncGenerator<T> {
    const { mostBytes = MOST_LISTED_BYTES } = options;
    let [read, most] = [0, Number.POSITIVE_INFINITY];
    for (let offset = 0; ; offset += MOST_ON_A_PAGE) {
      const page = { ...query, limit: MOST_ON_A_PAGE, offset };
      const { data, meta, bytes } = await this.#askPage(path, page, decode, options);
      if (offset === 0) most = 2 * meta.total + MOST_COMING_MEANWHILE;
      read += bytes;
      if (offset + data.length > most) throw new LeaseholdError('INVALID_RESPONSE', 'the list has no end');
      // Told at once, where it can be: who says that there are billions may be believed.
      if (Math.max(read, meta.total * LEAST_OF_A_ROW_BYTES) > mostBytes) {
        throw new LeaseholdError(
          'INVALID_RESPONSE',
          `the list is longer than ${mostBytes} bytes, which is the most that is read`,
        );
      }
      yield* data;
      if (data.length < MOST_ON_A_PAGE) return;
    }
  }

  async #askPage<T>(path: string, query: { readonly limit?: number }, decode: Decoder<T>, { signal }: CallOptions) {
    const spec = { method: 'GET', path, query, retry: 'always', signal } as const;
    const { data, meta, bytes } = await this.ask(spec, listOf(decode));
    if (data.length > (query.limit ?? Number.POSITIVE_INFINITY)) {
      throw new LeaseholdError('INVALID_RESPONSE', 'the page has more rows than were asked for');
    }
    const whole: Meta = { total: data.length, limit: data.length, offset: 0 };
    return { data, meta: meta === undefined ? whole : decodeMeta(meta), bytes };
  }

  /** Of what has a name that somebody else may give again meanwhile, or an id that nobody can. */
  async remove(path: string, { signal }: CallOptions, by: 'name' | 'id'): Promise<void> {
    const spec = { method: 'DELETE', path, retry: by === 'id' ? 'always' : 'if-not-applied', signal } as const;
    await this.#transport.remove(spec, this.caller);
  }
}
