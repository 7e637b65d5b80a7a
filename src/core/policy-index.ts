/**
 * The policies, indexed by principal, action and pattern. A decision looks up the principals that match the agent and
 * the patterns that match the path, so that its cost depends on the depth of the path and not on the number of
 * policies.
 */
import type { PolicyName, PrincipalName } from './names.ts';
import { nearestPattern } from './nearest-pattern.ts';
import type { CredentialPath } from './path.ts';
import { type PathRange, type Pattern, unionOf } from './pattern.ts';
import { stricterOf } from './pattern-index.ts';
import type { Action, Policy } from './policy.ts';
import { PrincipalIndex } from './principal-index.ts';

export class PolicyIndex {
  readonly #byName = new Map<PolicyName, Policy>();
  readonly #grants = new PrincipalIndex();
  /** Those with a rule about approvals, for the action of the rule. */
  readonly #approvals = new PrincipalIndex();

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
    this.#grants.put(policy, policy.actions);
    if (policy.approval != null) this.#approvals.put(policy, [policy.approval.for]);
  }

  remove(name: PolicyName): void {
    const policy = this.#byName.get(name);
    if (policy === undefined) return;
    this.#byName.delete(name);
    this.#grants.remove(policy, policy.actions);
    if (policy.approval != null) this.#approvals.remove(policy, [policy.approval.for]);
  }

  /** The most restrictive policy that matches the name, the action and the path, or null. */
  findDecidingPolicy(name: PrincipalName, action: Action, path: CredentialPath): Policy | null {
    let found: Policy | null = null;
    for (const grants of this.#grants.get(name)) {
      found = stricterOf(found, grants.get(action)?.mostRestrictive(path) ?? null);
    }
    return found;
  }

  /** Every policy that grants the action and demands an approval for it, each once. */
  findApprovalPolicies(name: PrincipalName, action: Action, path: CredentialPath): readonly Policy[] {
    const found = this.#approvals.get(name).flatMap((grants) => grants.get(action)?.matching(path) ?? []);
    return found.length > 1 ? [...new Set(found)] : found;
  }

  /** Of the patterns that some policy grants the agent or operator for the action; null if none does. */
  nearestPattern(name: PrincipalName, action: Action, path: CredentialPath): Pattern | null {
    const found = this.#grants.get(name).flatMap((grants) => grants.get(action)?.nearest(path) ?? []);
    return nearestPattern(found, path);
  }

  /**
   * The paths that those patterns match. Merges ranges only if several principals match the name; otherwise they are
   * cached.
   */
  grantedRanges(name: PrincipalName, action: Action): readonly PathRange[] {
    return unionOf(this.#grants.get(name).map((grants) => grants.get(action)?.ranges() ?? []));
  }

  /** Whether any policy names the agent or operator. */
  hasAnyPolicy(name: PrincipalName): boolean {
    return this.#grants.get(name).length > 0;
  }

  /** Whether any policy grants the agent or operator the action somewhere. */
  hasAction(name: PrincipalName, action: Action): boolean {
    return this.#grants.get(name).some((grants) => grants.has(action));
  }
}
