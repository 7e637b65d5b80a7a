/** Calls on targets: where a credential may be used. SOURCE: docs/api.md, "Targets". */
import {
  type ApiClient,
  type CallOptions,
  type PutOptions,
  type ReplaceOptions,
  type Tagged,
  toSegments,
} from './api-client.ts';
import { decodeTargets } from './decoders.ts';
import type { CredentialTargets, PutTargetsRequest } from './types.ts';

const addressOf = (path: string): string => `/api/v1/targets/${toSegments(path)}`;

export class Targets {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Sets or replaces the targets and the placement. Ends the credential's use leases. */
  put(path: string, body: PutTargetsRequest, options: PutOptions = {}): Promise<CredentialTargets> {
    return this.#api.put(addressOf(path), body, decodeTargets, options);
  }

  /** @throws LeaseholdError NOT_FOUND without targets, … */
  async read(path: string, options: CallOptions = {}): Promise<CredentialTargets> {
    return this.#api.read(addressOf(path), {}, decodeTargets, options);
  }

  /** Reads the resource with the tag of its state, which `ifMatch` takes. */
  readTagged(path: string, options: CallOptions = {}): Promise<Tagged<CredentialTargets>> {
    return this.#api.readTagged(addressOf(path), decodeTargets, options);
  }

  /** The credential cannot be used then. Ends its use leases. */
  async delete(path: string, options: ReplaceOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(path), options, 'name');
  }
}
