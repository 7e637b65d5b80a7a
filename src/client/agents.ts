/** Calls on agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Agents and sessions". */
import {
  type ApiClient,
  type CallOptions,
  type ListAllOptions,
  type ReplaceOptions,
  type Tagged,
  toSegment,
} from './api-client.ts';
import type { Agent, AgentRequest, AgentRotation, Page, PageFilter, RegisteredAgent, RotatedAgent } from './types.ts';

const AGENTS = '/api/v1/agents';
const addressOf = (name: string): string => `${AGENTS}/${toSegment(name, 'name')}`;

export class Agents {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Agent>> {
    return this.#api.page<Agent>(AGENTS, filter, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#api.pages<Agent>(AGENTS, {}, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Agent> {
    return this.#api.read<Agent>(addressOf(name), {}, options);
  }

  readTagged(name: string, options: CallOptions = {}): Promise<Tagged<Agent>> {
    return this.#api.readTagged<Agent>(addressOf(name), options);
  }

  /** Registers the agent with its own public key, or with a key pair that the server generates and stores. */
  register(body: AgentRequest, options: CallOptions = {}): Promise<RegisteredAgent> {
    return this.#api.post<RegisteredAgent>(AGENTS, body, options);
  }

  /** Replaces the key by the given public key, or by a key pair that the server generates. Sessions stay valid. */
  async rotate(name: string, body: AgentRotation, { signal }: CallOptions = {}): Promise<RotatedAgent> {
    const spec = { method: 'POST', path: `${addressOf(name)}/rotate`, body, retry: 'never', signal } as const;
    return (await this.#api.ask<RotatedAgent>(spec)).data;
  }

  /** Revokes the agent's sessions and leases immediately. */
  async deregister(name: string, options: ReplaceOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(name), options, 'name');
  }
}
