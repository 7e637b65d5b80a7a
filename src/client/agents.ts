/** Calls on agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Agents and sessions". */
import type { ApiClient, CallOptions, ReplaceOptions } from './api-client.ts';
import { NamedResources } from './named-resources.ts';
import type { Agent, AgentRequest, AgentRotation, RegisteredAgent, RotatedAgent } from './types.ts';

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
