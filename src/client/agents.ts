/** Calls on agents. SOURCE: interface 4.3; decisions, "Callers". */
import type { ApiClient, CallOptions, ListAllOptions } from './api-client.ts';
import { holdAgent, holdRegistered } from './decoders.ts';
import type { Agent, AgentRequest, Page, PageFilter, RegisteredAgent } from './types.ts';
import { toSegment } from './url-path.ts';

const AGENTS = '/api/v1/agents';
const addressOf = (name: string): string => `${AGENTS}/${toSegment(name, 'name')}`;

export class Agents {
  readonly #connection: ApiClient;

  constructor(connection: ApiClient) {
    this.#connection = connection;
  }

  list(filter: PageFilter = {}, options: CallOptions = {}): Promise<Page<Agent>> {
    return this.#connection.page(AGENTS, filter, holdAgent, options);
  }

  listAll(options: ListAllOptions = {}) {
    return this.#connection.pages(AGENTS, {}, holdAgent, options);
  }

  async read(name: string, options: CallOptions = {}): Promise<Agent> {
    return this.#connection.read(addressOf(name), {}, holdAgent, options);
  }

  /** With its own public key, or with a pair that the service makes and keeps. */
  async register(body: AgentRequest, { signal }: CallOptions = {}): Promise<RegisteredAgent> {
    const wanted = { method: 'POST', path: AGENTS, body, repeats: 'by key', signal } as const;
    return (await this.#connection.ask(wanted, holdRegistered)).data;
  }

  /** Its sessions and leases end at once. */
  async deregister(name: string, options: CallOptions = {}): Promise<void> {
    return this.#connection.remove(addressOf(name), options, 'name');
  }
}
