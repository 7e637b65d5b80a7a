/** Calls on exposures, for operators and the administrator, and the panic. SOURCE: docs/decisions.md, "Exposure". */
import { type ApiClient, type CallOptions, type ListAllOptions, toSegments } from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import type { CredentialExposure, ExposureFilter, Held, Page, Panicked, PanicRequest } from './types.ts';

const EXPOSURE = '/api/v1/exposure';
const PANIC = '/api/v1/panic';

export class ExposureCalls {
  readonly #api: ApiClient;
  readonly #cache: LeaseCache;

  constructor(api: ApiClient, cache: LeaseCache) {
    this.#api = api;
    this.#cache = cache;
  }

  async read(path: string, options: CallOptions = {}): Promise<CredentialExposure> {
    return this.#api.read<CredentialExposure>(`${EXPOSURE}/${toSegments(path)}`, {}, options);
  }

  list(filter: ExposureFilter, options: CallOptions = {}): Promise<Page<CredentialExposure>> {
    return this.#api.page<CredentialExposure>(EXPOSURE, filter, options);
  }

  listAll(filter: Pick<ExposureFilter, 'agent'>, options: ListAllOptions = {}) {
    return this.#api.pages<CredentialExposure>(EXPOSURE, filter, options);
  }

  held(filter: PanicRequest = {}, options: CallOptions = {}): Promise<Held> {
    return this.#api.read<Held>(PANIC, filter, options);
  }

  /**
   * Ends every lease, session and brokered request of the agent; without an agent, of everyone. A retry after a lost
   * response counts only the remaining ones.
   */
  async panic(body: PanicRequest = {}, { signal }: CallOptions = {}): Promise<Panicked> {
    const spec = { method: 'POST', path: PANIC, body, retry: 'always', signal } as const;
    const panicking = this.#api.ask<Panicked>(spec).then(({ data }) => data);
    return this.#cache.invalidateAfter({}, panicking);
  }
}
