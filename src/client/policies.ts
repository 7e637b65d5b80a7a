/** Calls on policies. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */
import {
  type ApiClient,
  type CallOptions,
  type ListAllOptions,
  type PutOptions,
  type ReplaceOptions,
  type Tagged,
  toSegment,
} from './api-client.ts';
import type {
  Page,
  PageFilter,
  Policy,
  PolicyReplacement,
  PolicyRequest,
  SimulateRequest,
  Simulation,
} from './types.ts';

const POLICIES = '/api/v1/policies';
const addressOf = (name: string): string => `${POLICIES}/${toSegment(name, 'name')}`;

export class Policies {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Policy>> {
    return this.#api.page<Policy>(POLICIES, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages<Policy>(POLICIES, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Policy> {
    return this.#api.read<Policy>(addressOf(name), {}, options);
  }

  readTagged(name: string, options: CallOptions = {}): Promise<Tagged<Policy>> {
    return this.#api.readTagged<Policy>(addressOf(name), options);
  }

  /** @throws LeaseholdError ALREADY_EXISTS */
  create(body: PolicyRequest, options: CallOptions = {}): Promise<Policy> {
    return this.#api.post<Policy>(POLICIES, body, options);
  }

  put(name: string, body: PolicyReplacement, options: PutOptions = {}): Promise<Policy> {
    return this.#api.put<Policy>(addressOf(name), body, options);
  }

  /** Takes effect immediately, on every node. */
  async delete(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(name), options, 'name');
  }

  /** Returns the decision and its reason without accessing or recording anything. */
  async simulate(body: SimulateRequest, { signal }: CallOptions = {}): Promise<Simulation> {
    const spec = { method: 'POST', path: `${POLICIES}/simulate`, body, retry: 'always', signal } as const;
    return (await this.#api.ask<Simulation>(spec)).data;
  }
}
