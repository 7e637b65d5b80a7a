/**
 * Calls on policies, agents and operators, which have in common a list, and one row by its name. SOURCE: docs/api.md,
 * "Policies", "Agents"; docs/operators.md.
 */
import {
  type CallOptions,
  Calls,
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

abstract class NamedResources<T> extends Calls {
  protected abstract readonly path: string;

  /** @throws LeaseholdError INVALID_REQUEST */
  protected addressOf(name: string): string {
    return `${this.path}/${toSegment(name, 'name')}`;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<T>> {
    return this.api.page(this.path, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.api.pages<T>(this.path, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<T> {
    return this.api.read(this.addressOf(name), {}, options);
  }

  async readTagged(name: string, options: CallOptions = {}): Promise<Tagged<T>> {
    return this.api.readTagged(this.addressOf(name), options);
  }
}

export class Policies extends NamedResources<Policy> {
  protected readonly path = '/api/v1/policies';

  /** @throws LeaseholdError ALREADY_EXISTS */
  create(body: PolicyRequest, options: CallOptions = {}): Promise<Policy> {
    return this.api.post(this.path, body, options);
  }

  put(name: string, body: PolicyReplacement, options: PutOptions = {}): Promise<Policy> {
    return this.api.put(this.addressOf(name), body, options);
  }

  /** Takes effect immediately, on every node. */
  async delete(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.api.remove(this.addressOf(name), options, 'name');
  }

  /** Returns the decision and its reason without accessing or recording anything. */
  async simulate(body: SimulateRequest, options: CallOptions = {}): Promise<Simulation> {
    return this.api.post(`${this.path}/simulate`, body, options, 'always');
  }
}

export class Agents extends NamedResources<Agent> {
  protected readonly path = '/api/v1/agents';

  /** Registers the agent with its own public key, or with a key pair that the server generates and stores. */
  register(body: AgentRequest, options: CallOptions = {}): Promise<RegisteredAgent> {
    return this.api.post(this.path, body, options);
  }

  /** Replaces the key by the given public key, or by a key pair that the server generates. Sessions stay valid. */
  async rotate(name: string, body: AgentRotation, options: CallOptions = {}): Promise<RotatedAgent> {
    return this.api.post(`${this.addressOf(name)}/rotate`, body, options, 'never');
  }

  /** Revokes the agent's sessions and leases immediately. */
  async deregister(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.api.remove(this.addressOf(name), options, 'name');
  }
}

/** Calls on operators. Names are without the prefix `operator:`. */
export class Operators extends NamedResources<Operator> {
  protected readonly path = '/api/v1/operators';

  add(body: OperatorRequest, options: CallOptions = {}): Promise<Operator> {
    return this.api.post(this.path, body, options);
  }

  replace(name: string, body: OperatorReplacement, options: ReplaceOptions = {}): Promise<Operator> {
    return this.api.put(this.addressOf(name), body, options);
  }

  /** Ends the operator's sessions and leases immediately. */
  async rotate(name: string, body: OperatorRotation, options: CallOptions = {}): Promise<Operator> {
    return this.api.post(`${this.addressOf(name)}/rotate`, body, options, 'never');
  }

  /** Creates a code with which the operator can register one passkey. */
  async invite(name: string, options: CallOptions = {}): Promise<OneTimeCode> {
    return this.api.post(`${this.addressOf(name)}/enrolment`, undefined, options, 'always');
  }

  /** Ends the operator's sessions and leases immediately. */
  async removePasskey(name: string, id: string, options: CallOptions = {}): Promise<void> {
    return this.api.remove(`${this.addressOf(name)}/passkeys/${toSegment(id, 'id')}`, options, 'id');
  }

  /** Ends the operator's sessions and leases immediately. */
  async remove(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.api.remove(this.addressOf(name), options, 'name');
  }
}
