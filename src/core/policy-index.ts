/**
 * The policies, compiled for deciding: by principal, action and pattern. A decision looks up the principals that name the
 * agent and the patterns that match the path, so that it costs the depth of the path and not the number of policies.
 */

import { LengthMultiset } from './length-multiset.ts';
import type { AgentName, PolicyName } from './names.ts';
import type { CredentialPath } from './path.ts';
import { type PathRange, type Pattern, unionOf } from './pattern.ts';
import { PatternIndex, stricterOf } from './pattern-index.ts';
import type { Action, Policy, Principal } from './policy.ts';

const MAX_CACHED_AGENTS = 10_000;

export class PolicyIndex {
  readonly #byName = new Map<PolicyName, Policy>();
  readonly #byPrincipal = new Map<Principal, Map<Action, PatternIndex>>();
  /** Of the names before the `*` of principals. */
  readonly #stemLengths = new LengthMultiset();
  /** What `#naming` found, until a principal comes or goes. */
  readonly #namingByAgent = new Map<AgentName, readonly Map<Action, PatternIndex>[]>();

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
      const grants = actions.get(action) ?? new PatternIndex();
      actions.set(action, grants);
      for (const pattern of policy.resources) grants.put(pattern, policy);
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
      for (const pattern of policy.resources) grants?.remove(pattern, name);
      if (grants?.isEmpty) actions.delete(action);
    }
    if (actions.size === 0) this.#dropPrincipal(policy.principal);
  }

  /** The policy that decides: of all that match agent, action and path the most restrictive, or null. */
  findDecidingPolicy(agent: AgentName, action: Action, path: CredentialPath): Policy | null {
    let found: Policy | null = null;
    for (const actions of this.#grantsFor(agent)) {
      found = stricterOf(found, actions.get(action)?.mostRestrictive(path) ?? null);
    }
    return found;
  }

  /** Every pattern that some policy grants the agent for the action. */
  grantedPatterns(agent: AgentName, action: Action): Set<Pattern> {
    const patterns = new Set<Pattern>();
    for (const actions of this.#grantsFor(agent)) {
      for (const pattern of actions.get(action)?.patterns() ?? []) patterns.add(pattern);
    }
    return patterns;
  }

  /** What those patterns cover: costs a pass through the ranges where several principals name the agent, else nothing. */
  grantedRanges(agent: AgentName, action: Action): readonly PathRange[] {
    return unionOf(this.#grantsFor(agent).map((actions) => actions.get(action)?.ranges() ?? []));
  }

  /** Whether any policy names the agent. */
  hasAnyPolicy(agent: AgentName): boolean {
    return this.#grantsFor(agent).length > 0;
  }

  /** Whether any policy grants the agent the action somewhere. */
  hasAction(agent: AgentName, action: Action): boolean {
    return this.#grantsFor(agent).some((actions) => actions.has(action));
  }

  #grantsFor(agent: AgentName): readonly Map<Action, PatternIndex>[] {
    const known = this.#namingByAgent.get(agent);
    if (known !== undefined) return known;
    const found = this.#findNaming(agent);
    // Simulations may ask for any name.
    if (this.#namingByAgent.size >= MAX_CACHED_AGENTS) this.#namingByAgent.clear();
    this.#namingByAgent.set(agent, found);
    return found;
  }

  #findNaming(agent: AgentName): Map<Action, PatternIndex>[] {
    const found: Map<Action, PatternIndex>[] = [];
    const exact = this.#byPrincipal.get(`agent:${agent}` as Principal);
    if (exact !== undefined) found.push(exact);
    for (const length of this.#stemLengths.lengths()) {
      if (length > agent.length) continue;
      const actions = this.#byPrincipal.get(`agent:${agent.slice(0, length)}*` as Principal);
      if (actions !== undefined) found.push(actions);
    }
    return found;
  }

  #principal(principal: Principal): Map<Action, PatternIndex> {
    const known = this.#byPrincipal.get(principal);
    if (known !== undefined) return known;
    const actions = new Map<Action, PatternIndex>();
    this.#byPrincipal.set(principal, actions);
    this.#namingByAgent.clear();
    if (principal.endsWith('*')) this.#stemLengths.add(stemLength(principal));
    return actions;
  }

  #dropPrincipal(principal: Principal): void {
    this.#byPrincipal.delete(principal);
    this.#namingByAgent.clear();
    if (principal.endsWith('*')) this.#stemLengths.remove(stemLength(principal));
  }
}

function stemLength(principal: Principal): number {
  return principal.length - 'agent:*'.length;
}
