/** Calls on targets: where a credential may be used. SOURCE: docs/api.md, "Targets". */
import { type ApiClient, type CallOptions, toSegments } from './api-client.ts';
import { decodeTargets } from './decoders.ts';
import type { CredentialTargets, PutTargetsRequest } from './types.ts';

const addressOf = (path: string): string => `/api/v1/targets/${toSegments(path)}`;

export class Targets {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Sets or replaces the targets and the placement. Ends the credential's use leases. */
  async put(path: string, body: PutTargetsRequest, { signal }: CallOptions = {}): Promise<CredentialTargets> {
    const spec = { method: 'PUT', path: addressOf(path), body, retry: 'if-not-applied', signal } as const;
    return (await this.#api.ask(spec, decodeTargets)).data;
  }

  /** @throws LeaseholdError NOT_FOUND without targets, … */
  async read(path: string, options: CallOptions = {}): Promise<CredentialTargets> {
    return this.#api.read(addressOf(path), {}, decodeTargets, options);
  }

  /** The credential cannot be used then. Ends its use leases. */
  async delete(path: string, options: CallOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(path), options, 'name');
  }
}
