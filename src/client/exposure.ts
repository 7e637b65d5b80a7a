/** Calls on exposures, for operators and the administrator, and the panic. SOURCE: docs/decisions.md, "Exposure". */
import { type ApiClient, type CallOptions, Calls, type ListAllOptions, toSegments } from './api-client.ts';
import type { LeaseCache } from './cache.ts';
import type { CredentialExposure, ExposureFilter, Held, Page, Panicked, PanicRequest } from './types.ts';

const EXPOSURE = '/api/v1/exposure';
const PANIC = '/api/v1/panic';

export class ExposureCalls extends Calls {
  readonly #cache: LeaseCache;

  constructor(api: ApiClient, cache: LeaseCache) {
    super(api);
    this.#cache = cache;
  }

  async read(path: string, options: CallOptions = {}): Promise<CredentialExposure> {
    return this.api.read(`${EXPOSURE}/${toSegments(path)}`, {}, options);
  }

  list(filter: ExposureFilter, options: CallOptions = {}): Promise<Page<CredentialExposure>> {
    return this.api.page(EXPOSURE, filter, options);
  }

  listAll(filter: Pick<ExposureFilter, 'agent'>, options: ListAllOptions = {}) {
    return this.api.pages<CredentialExposure>(EXPOSURE, filter, options);
  }

  held(filter: PanicRequest = {}, options: CallOptions = {}): Promise<Held> {
    return this.api.read(PANIC, filter, options);
  }

  /**
   * Ends every lease, session and brokered request of the agent; without an agent, of everyone. A retry after a lost
   * response counts only the remaining ones.
   */
  panic(body: PanicRequest = {}, options: CallOptions = {}): Promise<Panicked> {
    return this.#cache.invalidateAfter({}, this.api.post(PANIC, body, options, 'always'));
  }
}
