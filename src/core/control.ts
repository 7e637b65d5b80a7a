/** The control state: agents, operators and policies, held in memory and compiled for deciding. */
import type { Agent } from './agent.ts';
import { AgentList } from './agent-list.ts';
import type { Change } from './change.ts';
import { type IdentityClaims, isBoundTo, isNamedBy } from './identity.ts';
import { type AgentId, type AgentName, isOperatorName, type OperatorName, type PrincipalName } from './names.ts';
import { hasRole, type Operator } from './operator.ts';
import type { PasskeyId } from './passkey.ts';
import { isOfOperators, type Policy, type Principal, principalMatches } from './policy.ts';
import { PolicyIndex } from './policy-index.ts';

export class ControlState {
  readonly policies = new PolicyIndex();
  readonly #agentsById = new Map<AgentId, Agent>();
  /** By the name in lower case: no two agents differ only in case. */
  readonly #agentsByName = new Map<string, Agent>();

  /** By the name in lower case, as agents. */
  readonly #operators = new Map<string, Operator>();

  readonly #agents = new AgentList(() => this.#agentsById.values());

  constructor(agents: Iterable<Agent>, policies: Iterable<Policy>, operators: Iterable<Operator> = []) {
    for (const agent of agents) this.#mapAgent(agent);
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

  /** Whether the name, in any spelling of its case, is an agent's. */
  isNameTaken(name: AgentName): boolean {
    return this.#agentsByName.has(name.toLowerCase());
  }

  get agentCount(): number {
    return this.#agentsById.size;
  }

  /** All agents, by name. A change leaves a list that was returned as it is. */
  agents(): readonly Agent[] {
    return this.#agents.all();
  }

  /** Whether an agent or operator exists that the principal names. */
  hasNamed(principal: Principal): boolean {
    if (isOfOperators(principal)) {
      return this.#operators.values().some(({ name }) => principalMatches(principal, name));
    }
    const name = principal.slice('agent:'.length);
    if (name.endsWith('*')) return this.#agents.hasPrefix(name.slice(0, -1));
    return this.agentByName(name as AgentName) !== null;
  }

  /** There are few operators. */
  operatorById(id: AgentId): Operator | null {
    return this.#operators.values().find((operator) => operator.id === id) ?? null;
  }

  /** The operator that registered the passkey. */
  operatorByPasskey(id: PasskeyId): Operator | null {
    return this.#operators.values().find(({ passkeys }) => passkeys?.some((passkey) => passkey.id === id)) ?? null;
  }

  /** The operator with the identity that a provider vouches for. */
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

  /** Who logs in with the name. */
  principalByName(name: PrincipalName): Agent | Operator | null {
    return isOperatorName(name) ? this.operatorByName(name) : this.agentByName(name);
  }

  isOperatorNameTaken(name: OperatorName): boolean {
    return this.#operators.has(name.toLowerCase());
  }

  /** Whether an operator has the role admin. */
  hasAdmin(): boolean {
    return this.#operators.values().some((operator) => hasRole(operator, 'admin'));
  }

  /** By name. */
  operators(): Operator[] {
    return [...this.#operators.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  apply(change: Change): void {
    if (change.kind === 'putAgent') this.#putAgent(change.agent);
    if (change.kind === 'removeAgent') this.#removeAgent(change);
    if (change.kind === 'putOperator') this.#operators.set(change.operator.name.toLowerCase(), change.operator);
    if (change.kind === 'removeOperator') this.#operators.delete(change.name.toLowerCase());
    if (change.kind === 'putPolicy') this.policies.put(change.policy);
    if (change.kind === 'removePolicy') this.policies.remove(change.name);
  }

  #putAgent(agent: Agent): void {
    for (const former of this.#mapAgent(agent)) this.#agents.remove(former.name);
    this.#agents.put(agent);
  }

  #removeAgent({ id, name }: { readonly id: AgentId; readonly name: AgentName }): void {
    const agent = this.#agentsById.get(id);
    if (agent !== undefined) this.#agents.remove(agent.name);
    this.#agentsById.delete(id);
    this.#agentsByName.delete(name.toLowerCase());
  }

  /** Returns the agents that it replaces. */
  #mapAgent(agent: Agent): Agent[] {
    // An agent that had this name was deregistered, even if this node missed its removal.
    const named = this.#agentsByName.get(agent.name.toLowerCase());
    const replaced = [named, this.#agentsById.get(agent.id)].filter((each) => each !== undefined);
    if (named !== undefined) this.#agentsById.delete(named.id);
    this.#agentsById.set(agent.id, agent);
    this.#agentsByName.set(agent.name.toLowerCase(), agent);
    return replaced;
  }
}
