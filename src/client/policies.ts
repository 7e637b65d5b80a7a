/** Calls on policies. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */
import type { ApiClient, CallOptions, PutOptions, ReplaceOptions } from './api-client.ts';
import { NamedResources } from './named-resources.ts';
import type { Policy, PolicyReplacement, PolicyRequest, SimulateRequest, Simulation } from './types.ts';

export class Policies extends NamedResources<Policy> {
  constructor(api: ApiClient) {
    super(api, '/api/v1/policies');
  }

  /** @throws LeaseholdError ALREADY_EXISTS */
  create(body: PolicyRequest, options: CallOptions = {}): Promise<Policy> {
    return this.api.post<Policy>(this.path, body, options);
  }

  put(name: string, body: PolicyReplacement, options: PutOptions = {}): Promise<Policy> {
    return this.api.put<Policy>(this.addressOf(name), body, options);
  }

  /** Takes effect immediately, on every node. */
  async delete(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.removeNamed(name, options);
  }

  /** Returns the decision and its reason without accessing or recording anything. */
  async simulate(body: SimulateRequest, { signal }: CallOptions = {}): Promise<Simulation> {
    const spec = { method: 'POST', path: `${this.path}/simulate`, body, retry: 'always', signal } as const;
    return (await this.api.ask<Simulation>(spec)).data;
  }
}
