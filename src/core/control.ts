/** The control state: agents, operators and policies, as every decision sees them. */
import type { Agent } from './agent.ts';
import type { Change } from './change.ts';
import { type AgentId, type AgentName, isOperatorName, type OperatorName, type PrincipalName } from './names.ts';
import { hasRole, type IdentityClaims, isBoundTo, isNamedBy, type Operator, type PasskeyId } from './operator.ts';
import { isOfOperators, type Policy, type Principal, principalMatches } from './policy.ts';
import { PolicyIndex } from './policy-index.ts';

/** More changes between two reads than this cost more than sorting all agents again. */
const MAX_CHANGES = 100;

/** The agents in the order of their names. A list that was read never changes: the next change copies it. */
class AgentList {
  readonly #source: () => Iterable<Agent>;
  /** Null until a read sorts them. */
  #sorted: Agent[] | null = null;
  #changes = 0;

  /** `source` has the agents with every change, in any order. */
  constructor(source: () => Iterable<Agent>) {
    this.#source = source;
  }

  all(): readonly Agent[] {
    this.#changes = 0;
    this.#sorted ??= [...this.#source()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sorted;
  }

  hasPrefix(prefix: string): boolean {
    const agents = this.all();
    return agents[indexOf(agents, prefix)]?.name.startsWith(prefix) ?? false;
  }

  /** Adds the agent, or replaces the one with its name. */
  put(agent: Agent): void {
    const agents = this.#change();
    if (agents === null) return;
    const at = indexOf(agents, agent.name);
    agents.splice(at, agents[at]?.name === agent.name ? 1 : 0, agent);
  }

  remove(name: string): void {
    const agents = this.#change();
    if (agents === null) return;
    const at = indexOf(agents, name);
    if (agents[at]?.name === name) agents.splice(at, 1);
  }

  #change(): Agent[] | null {
    this.#changes += 1;
    if (this.#changes > MAX_CHANGES) this.#sorted = null;
    else if (this.#changes === 1 && this.#sorted !== null) this.#sorted = [...this.#sorted];
    return this.#sorted;
  }
}

/** The index of the first name that is not before the text. */
function indexOf(agents: readonly Agent[], text: string): number {
  let [low, high] = [0, agents.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((agents[middle]?.name ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

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
