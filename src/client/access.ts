/**
 * Calls on policies, agents and operators, which have in common a list, and one row by its name. SOURCE: docs/api.md,
 * "Policies", "Agents"; docs/operators.md.
 */
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
  Agent,
  AgentRequest,
  AgentRotation,
  OneTimeCode,
  Operator,
  OperatorReplacement,
  OperatorRequest,
  OperatorRotation,
  Page,
  PageFilter,
  Policy,
  PolicyReplacement,
  PolicyRequest,
  RegisteredAgent,
  RotatedAgent,
  SimulateRequest,
  Simulation,
} from './types.ts';

export class NamedResources<T> {
  readonly #api: ApiClient;
  protected readonly path: string;

  constructor(api: ApiClient, path: string) {
    this.#api = api;
    this.path = path;
  }

  /** WHY not a field: whoever prints an object sees its fields. */
  protected get api(): ApiClient {
    return this.#api;
  }

  /** @throws LeaseholdError INVALID_REQUEST */
  protected addressOf(name: string): string {
    return `${this.path}/${toSegment(name, 'name')}`;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<T>> {
    return this.#api.page<T>(this.path, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages<T>(this.path, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<T> {
    return this.#api.read<T>(this.addressOf(name), {}, options);
  }

  async readTagged(name: string, options: CallOptions = {}): Promise<Tagged<T>> {
    return this.#api.readTagged<T>(this.addressOf(name), options);
  }

  protected async removeNamed(name: string, options: ReplaceOptions): Promise<void> {
    return this.#api.remove(this.addressOf(name), options, 'name');
  }
}

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

export class Agents extends NamedResources<Agent> {
  constructor(api: ApiClient) {
    super(api, '/api/v1/agents');
  }

  /** Registers the agent with its own public key, or with a key pair that the server generates and stores. */
  register(body: AgentRequest, options: CallOptions = {}): Promise<RegisteredAgent> {
    return this.api.post<RegisteredAgent>(this.path, body, options);
  }

  /** Replaces the key by the given public key, or by a key pair that the server generates. Sessions stay valid. */
  async rotate(name: string, body: AgentRotation, { signal }: CallOptions = {}): Promise<RotatedAgent> {
    const spec = { method: 'POST', path: `${this.addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.api.ask<RotatedAgent>(spec)).data;
  }

  /** Revokes the agent's sessions and leases immediately. */
  async deregister(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.removeNamed(name, options);
  }
}

/** Calls on operators. Names are without the prefix `operator:`. */
export class Operators extends NamedResources<Operator> {
  constructor(api: ApiClient) {
    super(api, '/api/v1/operators');
  }

  add(body: OperatorRequest, options: CallOptions = {}): Promise<Operator> {
    return this.api.post<Operator>(this.path, body, options);
  }

  replace(name: string, body: OperatorReplacement, options: ReplaceOptions = {}): Promise<Operator> {
    return this.api.put<Operator>(this.addressOf(name), body, options);
  }

  /** Ends the operator's sessions and leases immediately. */
  async rotate(name: string, body: OperatorRotation, { signal }: CallOptions = {}): Promise<Operator> {
    const spec = { method: 'POST', path: `${this.addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.api.ask<Operator>(spec)).data;
  }

  /** Creates a code with which the operator can register one passkey. */
  async invite(name: string, { signal }: CallOptions = {}): Promise<OneTimeCode> {
    const spec = { method: 'POST', path: `${this.addressOf(name)}/enrolment`, retry: 'always', signal } as const;
    return (await this.api.ask<OneTimeCode>(spec)).data;
  }

  /** Ends the operator's sessions and leases immediately. */
  async removePasskey(name: string, id: string, options: CallOptions = {}): Promise<void> {
    return this.api.remove(`${this.addressOf(name)}/passkeys/${toSegment(id, 'id')}`, options, 'id');
  }

  /** Ends the operator's sessions and leases immediately. */
  async remove(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.removeNamed(name, options);
  }
}
