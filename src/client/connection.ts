/** What every group of calls has: the way to the service, and who asks. */
import type { Caller } from './caller.ts';
import { LeaseholdError } from './errors.ts';
import type { Answered, Transport, Wanted } from './transport.ts';
import type { Page } from './types.ts';

/** Of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

const MOST_ON_A_PAGE = 1000;

export class Connection {
  readonly #transport: Transport;
  readonly caller: Caller;

  constructor(transport: Transport, caller: Caller) {
    this.#transport = transport;
    this.caller = caller;
  }

  ask<T>(wanted: Wanted): Promise<Answered<T>> {
    return this.#transport.ask<T>(wanted, this.caller);
  }

  stream(wanted: Wanted): Promise<Response> {
    return this.#transport.stream(wanted, this.caller);
  }

  async read<T>(path: string, query: object, { signal }: CallOptions): Promise<T> {
    return (await this.ask<T>({ method: 'GET', path, query, repeats: 'freely', signal })).data;
  }

  /** A page of a list; without limit the service answers all, and then there are as many as there are. */
  async page<T>(path: string, query: object, { signal }: CallOptions): Promise<Page<T>> {
    const { data, meta } = await this.ask<T[]>({ method: 'GET', path, query, repeats: 'freely', signal });
    if (!Array.isArray(data)) throw new LeaseholdError('BAD_ANSWER', 'the answer is no list');
    return { data, meta: meta ?? { total: data.length, limit: data.length, offset: 0 } };
  }

  /** All of a list, page by page, so that neither side holds more than one. */
  async *pages<T>(path: string, query: object, options: CallOptions): AsyncGenerator<T> {
    for (let offset = 0; ; offset += MOST_ON_A_PAGE) {
      const { data } = await this.page<T>(path, { ...query, limit: MOST_ON_A_PAGE, offset }, options);
      yield* data;
      if (data.length < MOST_ON_A_PAGE) return;
    }
  }

  /** Of what has a name that somebody else may give again meanwhile, or an id that nobody can. */
  async remove(path: string, { signal }: CallOptions, by: 'name' | 'id'): Promise<void> {
    await this.ask<void>({ method: 'DELETE', path, repeats: by === 'id' ? 'freely' : 'if undone', signal });
  }
}
