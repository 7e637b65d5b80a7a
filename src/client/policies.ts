/** Calls on policies. SOURCE: interface 4.2; decisions, "Policies and decisions". */
import type { ApiClient, CallOptions, ListAllOptions } from './api-client.ts';
import { holdPolicy, holdSimulation } from './decoders.ts';
import type {
  Page,
  PageFilter,
  Policy,
  PolicyReplacement,
  PolicyRequest,
  SimulateRequest,
  Simulation,
} from './types.ts';
import { toSegment } from './url-path.ts';

const POLICIES = '/api/v1/policies';
const addressOf = (name: string): string => `${POLICIES}/${toSegment(name, 'name')}`;

export class Policies {
  readonly #connection: ApiClient;

  constructor(connection: ApiClient) {
    this.#connection = connection;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Policy>> {
    return this.#connection.page(POLICIES, filter, holdPolicy, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#connection.pages(POLICIES, {}, holdPolicy, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Policy> {
    return this.#connection.read(addressOf(name), {}, holdPolicy, options);
  }

  /** @throws LeaseholdError ALREADY_EXISTS */
  async create(body: PolicyRequest, { signal }: CallOptions = {}): Promise<Policy> {
    const wanted = { method: 'POST', path: POLICIES, body, repeats: 'by key', signal } as const;
    return (await this.#connection.ask(wanted, holdPolicy)).data;
  }

  /** Creates it, or takes the place of the one with that name. */
  async put(name: string, body: PolicyReplacement, { signal }: CallOptions = {}): Promise<Policy> {
    const wanted = { method: 'PUT', path: addressOf(name), body, repeats: 'if undone', signal } as const;
    return (await this.#connection.ask(wanted, holdPolicy)).data;
  }

  /** From then on it grants nothing, on any node. */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.remove(addressOf(name), options, 'name');
  }

  /** What would be decided, and why; nothing is accessed or recorded. */
  async simulate(body: SimulateRequest, { signal }: CallOptions = {}): Promise<Simulation> {
    const wanted = { method: 'POST', path: `${POLICIES}/simulate`, body, repeats: 'freely', signal } as const;
    return (await this.#connection.ask(wanted, holdSimulation)).data;
  }
}
