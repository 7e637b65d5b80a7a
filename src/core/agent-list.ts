/** The agents in the order of their names. A list that was read never changes: the next change copies it. */
import type { Agent } from './agent.ts';

/** More changes between two reads than this cost more than sorting all agents again. */
const MAX_CHANGES = 100;

export class AgentList {
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
