/** The control state: agents, operators and policies, as every decision sees them. */

import type { Agent } from '../vault/agents/agent.ts';
import {
  hasRole,
  type IdentityClaims,
  isBoundTo,
  isNamedBy,
  type Operator,
  type PasskeyId,
} from '../vault/operators/operator.ts';
import type { Policy } from '../vault/policies/policy.ts';
import { PolicyIndex } from '../vault/policies/policy-index.ts';
import type { HeldChange } from './change.ts';
import { type AgentId, type AgentName, isOperatorName, type OperatorName, type PrincipalName } from './names.ts';

export class ControlState {
  readonly policies = new PolicyIndex();
  readonly #agentsById = new Map<AgentId, Agent>();
  /** The key is the name in lower case: no two agents differ only in case. */
  readonly #agentsByName = new Map<string, Agent>();

  /** The key is the name in lower case, as for agents. */
  readonly #operators = new Map<string, Operator>();

  /** Null after a change. */
  #sortedAgents: readonly Agent[] | null = null;

  constructor(agents: Iterable<Agent>, policies: Iterable<Policy>, operators: Iterable<Operator> = []) {
    for (const agent of agents) this.#putAgent(agent);
    for (const operator of operators) this.#operators.set(operator.name.toLowerCase(), operator);
    for (const policy of policies) this.policies.put(policy);
  }

  agentById(id: AgentId): Agent | null {
    return this.#agentsById.get(id) ?? null;
  }

  agentByName(name: AgentName): Agent | null {
    const agent = this.#agentsByName.get(name.toLowerCase());
    return agent?.name === name ? agent : null;
  }

  isNameTaken(name: AgentName): boolean {
    return this.#agentsByName.has(name.toLowerCase());
  }

  get agentCount(): number {
    return this.#agentsById.size;
  }

  agents(): readonly Agent[] {
    this.#sortedAgents ??= [...this.#agentsById.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sortedAgents;
  }

  /** There are few operators. */
  operatorById(id: AgentId): Operator | null {
    return this.#operators.values().find((operator) => operator.id === id) ?? null;
  }

  operatorByPasskey(id: PasskeyId): Operator | null {
    return this.#operators.values().find(({ passkeys }) => passkeys?.some((passkey) => passkey.id === id)) ?? null;
  }

  operatorByIdentity(claims: IdentityClaims): Operator | null {
    const operators = [...this.#operators.values()];
    return (
      operators.find(({ identity }) => isBoundTo(identity, claims)) ??
      operators.find(({ identity }) => isNamedBy(identity, claims)) ??
      null
    );
  }

  operatorByName(name: OperatorName): Operator | null {
    const operator = this.#operators.get(name.toLowerCase());
    return operator?.name === name ? operator : null;
  }

  principalByName(name: PrincipalName): Agent | Operator | null {
    return isOperatorName(name) ? this.operatorByName(name) : this.agentByName(name);
  }

  isOperatorNameTaken(name: OperatorName): boolean {
    return this.#operators.has(name.toLowerCase());
  }

  hasAdmin(): boolean {
    return this.#operators.values().some((operator) => hasRole(operator, 'admin'));
  }

  /** The operators, sorted by name. */
  operators(): Operator[] {
    return [...this.#operators.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  apply(change: HeldChange): void {
    switch (change.resource) {
      case 'agent':
        if (change.kind === 'put') this.#putAgent(change.row);
        else this.#removeAgent(change.row);
        return;
      case 'operator':
        if (change.kind === 'put') this.#operators.set(change.row.name.toLowerCase(), change.row);
        else this.#operators.delete(change.row.name.toLowerCase());
        return;
      case 'policy':
        if (change.kind === 'put') this.policies.put(change.row);
        else this.policies.remove(change.row.name);
        return;
    }
  }

  /** WHY both: a row that was altered outside may have the id of one agent and the name of another. */
  #removeAgent({ id, name }: { readonly id: AgentId; readonly name: AgentName }): void {
    this.#sortedAgents = null;
    for (const agent of [this.#agentsById.get(id), this.#agentsByName.get(name.toLowerCase())]) {
      if (agent === undefined) continue;
      this.#agentsById.delete(agent.id);
      this.#agentsByName.delete(agent.name.toLowerCase());
    }
  }

  #putAgent(agent: Agent): void {
    this.#sortedAgents = null;
    // An agent that had this name was deregistered, even if this node missed its removal.
    const named = this.#agentsByName.get(agent.name.toLowerCase());
    if (named !== undefined) this.#agentsById.delete(named.id);
    this.#agentsById.set(agent.id, agent);
    this.#agentsByName.set(agent.name.toLowerCase(), agent);
  }
}
