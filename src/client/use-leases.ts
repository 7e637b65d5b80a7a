/** Calls on use leases, whose tokens are accepted at base URLs only. SOURCE: docs/api.md, "POST /api/v1/leases/use". */
import { Secret } from '../core/secret.ts';
import type { ApiClient, CallOptions } from './api-client.ts';
import type { AgentUseLease, UseLeaseRequest } from './types.ts';
import { decodeUseLease } from './use-decoders.ts';

export class UseLeases {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /**
   * Issues the agent a lease with a token that an SDK sends as its API key to the base URL. Revoke it with
   * `leases.revoke`. The service keeps no response with a token, so a lost one is not retried.
   * @throws LeaseholdError ACCESS_DENIED, NOT_FOUND, …
   */
  async issue(body: UseLeaseRequest, { signal }: CallOptions = {}): Promise<AgentUseLease> {
    const spec = { method: 'POST', path: '/api/v1/leases/use', body, retry: 'if-not-applied', signal } as const;
    const { token, env, ...lease } = (await this.#api.ask(spec, decodeUseLease)).data;
    const variables = Object.entries(env).map(([name, value]) => [name, new Secret(value)] as const);
    return { ...lease, token: new Secret(token), env: Object.fromEntries(variables) };
  }
}
