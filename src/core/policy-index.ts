/**
 * The policies, indexed by principal, action and pattern. A decision looks up the principals that match the agent and
 * the patterns that match the path, so that its cost depends on the depth of the path and not on the number of
 * policies.
 */
import type { PolicyName, PrincipalName } from './names.ts';
import type { CredentialPath } from './path.ts';
import { matches, type PathRange, type Pattern, unionOf } from './pattern.ts';
import { LengthMultiset, PatternIndex, stricterOf } from './pattern-index.ts';
import { type Action, type Policy, type Principal, principalMatches, principalOf } from './policy.ts';

const MAX_CACHED_NAMES = 10_000;

export class PolicyIndex {
  readonly #byName = new Map<PolicyName, Policy>();
  readonly #byPrincipal = new Map<Principal, Map<Action, PatternIndex>>();
  /** Those with a rule about approvals. */
  readonly #withApproval = new Map<PolicyName, Policy>();
  /** The lengths of the principals with `*`, without it. */
  readonly #prefixLengths = new LengthMultiset();
  /** Caches `#findGrants`. It is cleared when a principal is added or removed. */
  readonly #grantsByName = new Map<PrincipalName, readonly Map<Action, PatternIndex>[]>();

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

  /** Adds the policy, or replaces the one with its name. */
  put(policy: Policy): void {
    this.remove(policy.name);
    this.#byName.set(policy.name, policy);
    if (policy.approval != null) this.#withApproval.set(policy.name, policy);
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
    this.#withApproval.delete(name);
    const actions = this.#byPrincipal.get(policy.principal);
    if (actions === undefined) return;
    for (const action of policy.actions) {
      const grants = actions.get(action);
      for (const pattern of policy.resources) grants?.remove(pattern, name);
      if (grants?.isEmpty) actions.delete(action);
    }
    if (actions.size === 0) this.#dropPrincipal(policy.principal);
  }

  /** The most restrictive policy that matches the name, the action and the path, or null. */
  findDecidingPolicy(name: PrincipalName, action: Action, path: CredentialPath): Policy | null {
    let found: Policy | null = null;
    for (const actions of this.#grantsFor(name)) {
      found = stricterOf(found, actions.get(action)?.mostRestrictive(path) ?? null);
    }
    return found;
  }

  /** Every policy that grants the action and demands an approval for it. */
  findApprovalPolicies(name: PrincipalName, action: Action, path: CredentialPath): readonly Policy[] {
    if (this.#withApproval.size === 0) return [];
    return [...this.#withApproval.values()].filter(
      ({ approval, principal, resources }) =>
        approval?.for === action &&
        principalMatches(principal, name) &&
        resources.some((pattern) => matches(pattern, path)),
    );
  }

  /** Every pattern that some policy grants the agent or operator for the action. */
  grantedPatterns(name: PrincipalName, action: Action): Set<Pattern> {
    const patterns = new Set<Pattern>();
    for (const actions of this.#grantsFor(name)) {
      for (const pattern of actions.get(action)?.patterns() ?? []) patterns.add(pattern);
    }
    return patterns;
  }

  /**
   * The paths that those patterns match. Merges ranges only if several principals match the name; otherwise they are
   * cached.
   */
  grantedRanges(name: PrincipalName, action: Action): readonly PathRange[] {
    return unionOf(this.#grantsFor(name).map((actions) => actions.get(action)?.ranges() ?? []));
  }

  /** Whether any policy names the agent or operator. */
  hasAnyPolicy(name: PrincipalName): boolean {
    return this.#grantsFor(name).length > 0;
  }

  /** Whether any policy grants the agent or operator the action somewhere. */
  hasAction(name: PrincipalName, action: Action): boolean {
    return this.#grantsFor(name).some((actions) => actions.has(action));
  }

  #grantsFor(name: PrincipalName): readonly Map<Action, PatternIndex>[] {
    const known = this.#grantsByName.get(name);
    if (known !== undefined) return known;
    const found = this.#findGrants(name);
    // A simulation may ask for any name, so the cache needs a limit.
    if (this.#grantsByName.size >= MAX_CACHED_NAMES) this.#grantsByName.clear();
    this.#grantsByName.set(name, found);
    return found;
  }

  #findGrants(name: PrincipalName): Map<Action, PatternIndex>[] {
    const found: Map<Action, PatternIndex>[] = [];
    const principal = principalOf(name);
    const exact = this.#byPrincipal.get(principal);
    if (exact !== undefined) found.push(exact);
    for (const length of this.#prefixLengths.lengths()) {
      if (length > principal.length) continue;
      const actions = this.#byPrincipal.get(`${principal.slice(0, length)}*` as Principal);
      if (actions !== undefined) found.push(actions);
    }
    return found;
  }

  #principal(principal: Principal): Map<Action, PatternIndex> {
    const known = this.#byPrincipal.get(principal);
    if (known !== undefined) return known;
    const actions = new Map<Action, PatternIndex>();
    this.#byPrincipal.set(principal, actions);
    this.#grantsByName.clear();
    if (principal.endsWith('*')) this.#prefixLengths.add(prefixLength(principal));
    return actions;
  }

  #dropPrincipal(principal: Principal): void {
    this.#byPrincipal.delete(principal);
    this.#grantsByName.clear();
    if (principal.endsWith('*')) this.#prefixLengths.remove(prefixLength(principal));
  }
}

function prefixLength(principal: Principal): number {
  return principal.length - '*'.length;
}
