/** The control state: agents and policies, held in memory and compiled for deciding. */
import type { Agent } from './agent.ts';
import type { Change } from './change.ts';
import type { AgentId, AgentName } from './names.ts';
import type { Policy } from './policy.ts';
import { PolicyIndex } from './policy-index.ts';

export class ControlState {
  readonly policies = new PolicyIndex();
  readonly #agentsById = new Map<AgentId, Agent>();
  /** By the name in lower case: no two agents differ only in case. */
  readonly #agentsByName = new Map<string, Agent>();

  constructor(agents: Iterable<Agent>, policies: Iterable<Policy>) {
    for (const agent of agents) this.#putAgent(agent);
    for (const policy of policies) this.policies.put(policy);
  }

  agentById(id: AgentId): Agent | null {
    return this.#agentsById.get(id) ?? null;
  }

  agentByName(name: AgentName): Agent | null {
    const agent = this.#agentsByName.get(name.toLowerCase());
    return agent?.name === name ? agent : null;
  }

  /** Whether the name, in any spelling of its case, is an agent's. */
  isNameTaken(name: AgentName): boolean {
    return this.#agentsByName.has(name.toLowerCase());
  }

  /** All agents, by name. */
  get agentCount(): number {
    return this.#agentsById.size;
  }

  agents(): Agent[] {
    return [...this.#agentsById.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  apply(change: Change): void {
    if (change.kind === 'putAgent') this.#putAgent(change.agent);
    if (change.kind === 'removeAgent') {
      this.#agentsById.delete(change.id);
      this.#agentsByName.delete(change.name.toLowerCase());
    }
    if (change.kind === 'putPolicy') this.policies.put(change.policy);
    if (change.kind === 'removePolicy') this.policies.remove(change.name);
  }

  #putAgent(agent: Agent): void {
    // An agent that had this name was deregistered, even if this node missed its removal.
    const former = this.#agentsByName.get(agent.name.toLowerCase());
    if (former !== undefined) this.#agentsById.delete(former.id);
    this.#agentsById.set(agent.id, agent);
    this.#agentsByName.set(agent.name.toLowerCase(), agent);
  }
}
