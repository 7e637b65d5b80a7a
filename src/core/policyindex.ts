/**
 * The policies, compiled for deciding: by principal, action and pattern. A decision looks up the principals that name the
 * agent and the patterns that match the path, so that it costs the depth of the path and not the number of policies.
 */
import type { AgentName, PolicyName } from './names.ts';
import type { CredentialPath } from './path.ts';
import { type Pattern, patternsOf } from './pattern.ts';
import type { Action, Policy, Principal } from './policy.ts';

/** The policies of one principal for one action: each pattern's, most restrictive first. */
type Grants = Map<Pattern, Policy[]>;

/** INVARIANT: smallest `maxTtlSeconds` first, then the name in code-point order. The first one decides. */
function compareRestriction(a: Policy, b: Policy): number {
  return a.maxTtlSeconds - b.maxTtlSeconds || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

function moreRestrictive(a: Policy | null, b: Policy | null): Policy | null {
  if (a === null || b === null) return a ?? b;
  return compareRestriction(a, b) <= 0 ? a : b;
}

const MAX_AGENTS_KNOWN = 10_000;

export class PolicyIndex {
  readonly #byName = new Map<PolicyName, Policy>();
  readonly #byPrincipal = new Map<Principal, Map<Action, Grants>>();
  /** How many principals with a trailing `*` there are of each length, so that only lengths in use are looked up. */
  readonly #stemLengths = new Map<number, number>();
  /** What `#naming` found, until a policy changes. */
  readonly #namingByAgent = new Map<AgentName, readonly Map<Action, Grants>[]>();

  get(name: PolicyName): Policy | null {
    return this.#byName.get(name) ?? null;
  }

  /** All policies, by name. */
  all(): Policy[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get size(): number {
    return this.#byName.size;
  }

  /** Adds the policy, or puts it in the place of the one with its name. */
  put(policy: Policy): void {
    this.remove(policy.name);
    this.#byName.set(policy.name, policy);
    const actions = this.#principal(policy.principal);
    for (const action of policy.actions) {
      const grants = actions.get(action) ?? new Map<Pattern, Policy[]>();
      actions.set(action, grants);
      for (const pattern of policy.resources) {
        const policies = grants.get(pattern) ?? [];
        const next = policies.findIndex((other) => compareRestriction(other, policy) > 0);
        policies.splice(next === -1 ? policies.length : next, 0, policy);
        grants.set(pattern, policies);
      }
    }
  }

  remove(name: PolicyName): void {
    const policy = this.#byName.get(name);
    if (policy === undefined) return;
    this.#byName.delete(name);
    const actions = this.#byPrincipal.get(policy.principal);
    if (actions === undefined) return;
    for (const action of policy.actions) {
      const grants = actions.get(action);
      for (const pattern of policy.resources) {
        const rest = grants?.get(pattern)?.filter((other) => other.name !== name) ?? [];
        if (rest.length > 0) grants?.set(pattern, rest);
        else grants?.delete(pattern);
      }
      if (grants?.size === 0) actions.delete(action);
    }
    if (actions.size === 0) this.#dropPrincipal(policy.principal);
  }

  /** The policy that decides: of all that match agent, action and path the most restrictive, or null. */
  deciding(agent: AgentName, action: Action, path: CredentialPath): Policy | null {
    const patterns = patternsOf(path);
    let found: Policy | null = null;
    for (const actions of this.#naming(agent)) {
      const grants = actions.get(action);
      if (grants === undefined) continue;
      for (const pattern of patterns) found = moreRestrictive(found, grants.get(pattern)?.[0] ?? null);
    }
    return found;
  }

  /** Every pattern that some policy grants the agent for the action. */
  granted(agent: AgentName, action: Action): Set<Pattern> {
    const patterns = new Set<Pattern>();
    for (const actions of this.#naming(agent)) {
      for (const pattern of actions.get(action)?.keys() ?? []) patterns.add(pattern);
    }
    return patterns;
  }

  /** Whether any policy names the agent. */
  isNamed(agent: AgentName): boolean {
    return this.#naming(agent).length > 0;
  }

  /** Whether any policy grants the agent the action somewhere. */
  hasAction(agent: AgentName, action: Action): boolean {
    return this.#naming(agent).some((actions) => actions.has(action));
  }

  #naming(agent: AgentName): readonly Map<Action, Grants>[] {
    const known = this.#namingByAgent.get(agent);
    if (known !== undefined) return known;
    const found = this.#findNaming(agent);
    // Simulations may ask for any name.
    if (this.#namingByAgent.size >= MAX_AGENTS_KNOWN) this.#namingByAgent.clear();
    this.#namingByAgent.set(agent, found);
    return found;
  }

  #findNaming(agent: AgentName): Map<Action, Grants>[] {
    const found: Map<Action, Grants>[] = [];
    const exact = this.#byPrincipal.get(`agent:${agent}` as Principal);
    if (exact !== undefined) found.push(exact);
    for (const length of this.#stemLengths.keys()) {
      if (length > agent.length) continue;
      const actions = this.#byPrincipal.get(`agent:${agent.slice(0, length)}*` as Principal);
      if (actions !== undefined) found.push(actions);
    }
    return found;
  }

  #principal(principal: Principal): Map<Action, Grants> {
    const known = this.#byPrincipal.get(principal);
    if (known !== undefined) return known;
    const actions = new Map<Action, Grants>();
    this.#byPrincipal.set(principal, actions);
    this.#countStem(principal, 1);
    return actions;
  }

  #dropPrincipal(principal: Principal): void {
    this.#byPrincipal.delete(principal);
    this.#countStem(principal, -1);
  }

  /** Called where a principal comes or goes. */
  #countStem(principal: Principal, change: 1 | -1): void {
    this.#namingByAgent.clear();
    if (!principal.endsWith('*')) return;
    const length = principal.length - 'agent:*'.length;
    const count = (this.#stemLengths.get(length) ?? 0) + change;
    if (count > 0) this.#stemLengths.set(length, count);
    else this.#stemLengths.delete(length);
  }
}
