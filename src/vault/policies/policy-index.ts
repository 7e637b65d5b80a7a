/**
 * Indexes of policies, by the prefixes of their patterns, by the principals that they name, and by both; and the
 * decision. A decision costs the depth of the path, and not the number of policies.
 */
import type { DenialOf } from '../../core/denials.ts';
import type { PolicyName, PrincipalName } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import {
  matchingPatterns,
  nearestOf,
  nearestPattern,
  type PathRange,
  type Pattern,
  toRanges,
  unionOf,
} from '../../core/pattern.ts';
import {
  type Action,
  hasExpired,
  isAction,
  type Policy,
  type Principal,
  principalOf,
  type TtlSeconds,
} from './policy.ts';

/** Counts strings by length, so that a lookup can skip lengths that no string has. */
class LengthMultiset {
  readonly #counts = new Map<number, number>();

  has(length: number): boolean {
    return this.#counts.has(length);
  }

  lengths(): Iterable<number> {
    return this.#counts.keys();
  }

  add(length: number): void {
    this.#counts.set(length, (this.#counts.get(length) ?? 0) + 1);
  }

  remove(length: number): void {
    const count = (this.#counts.get(length) ?? 0) - 1;
    if (count > 0) this.#counts.set(length, count);
    else this.#counts.delete(length);
  }
}

/** INVARIANT: smallest `maxTtlSeconds` first, then the name in code-point order. The first one decides. */
function compareRestriction(a: Policy, b: Policy): number {
  return a.maxTtlSeconds - b.maxTtlSeconds || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/**
 * Returns the position of the policy, or the position at which it belongs. WHY a binary search: thousands may expire in
 * one moment.
 */
function positionOf(policies: readonly Policy[], policy: Policy): number {
  let [from, to] = [0, policies.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = policies[middle];
    if (other !== undefined && compareRestriction(other, policy) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function stricterOf(a: Policy | null, b: Policy | null): Policy | null {
  if (a === null || b === null) return a ?? b;
  return compareRestriction(a, b) <= 0 ? a : b;
}

class PatternIndex {
  /** Each pattern's policies, most restrictive first. */
  readonly #byPattern = new Map<Pattern, Policy[]>();
  readonly #lengths = new LengthMultiset();
  /** The patterns in code-point order. Patterns that changed since are missing or left over until `#patterns`. */
  #sorted: readonly Pattern[] = [];
  #isSorted = true;
  /** Null after a change. */
  #ranges: readonly PathRange[] | null = null;

  get isEmpty(): boolean {
    return this.#byPattern.size === 0;
  }

  ranges(): readonly PathRange[] {
    this.#ranges ??= toRanges(this.#patterns());
    return this.#ranges;
  }

  nearest(path: CredentialPath): Pattern | null {
    return nearestOf(this.#patterns(), path);
  }

  /** The patterns in code-point order. */
  #patterns(): readonly Pattern[] {
    if (!this.#isSorted) {
      const added = new Set(this.#byPattern.keys());
      const kept = this.#sorted.filter((pattern) => added.delete(pattern));
      // A long run in order and a short rest are sorted in linear time.
      this.#sorted = [...kept, ...added].sort();
      this.#isSorted = true;
    }
    return this.#sorted;
  }

  #changed(): void {
    this.#isSorted = false;
    this.#ranges = null;
  }

  put(pattern: Pattern, policy: Policy): void {
    const policies = this.#byPattern.get(pattern) ?? [];
    policies.splice(positionOf(policies, policy), 0, policy);
    if (policies.length > 1) return;
    this.#changed();
    this.#byPattern.set(pattern, policies);
    this.#lengths.add(pattern.length);
  }

  remove(pattern: Pattern, policy: Policy): void {
    const policies = this.#byPattern.get(pattern);
    if (policies === undefined) return;
    const position = positionOf(policies, policy);
    if (policies[position]?.name === policy.name) policies.splice(position, 1);
    if (policies.length > 0) return;
    this.#changed();
    this.#byPattern.delete(pattern);
    this.#lengths.remove(pattern.length);
  }

  mostRestrictive(path: CredentialPath): Policy | null {
    let found: Policy | null = null;
    for (const pattern of matchingPatterns(path, this.#lengths)) {
      found = stricterOf(found, this.#byPattern.get(pattern)?.[0] ?? null);
    }
    return found;
  }

  /** Every policy that matches the path; one with several matching patterns as often. */
  matching(path: CredentialPath): Policy[] {
    return matchingPatterns(path, this.#lengths).flatMap((pattern) => this.#byPattern.get(pattern) ?? []);
  }
}

type Grants = ReadonlyMap<Action, PatternIndex>;

const NONE: readonly Grants[] = [];

class PrincipalIndex {
  readonly #byPrincipal = new Map<Principal, Map<Action, PatternIndex>>();
  /** The lengths of the principals with `*`, without it. */
  readonly #prefixLengths = new LengthMultiset();

  /** Adds the policy for the actions. It must not be there. */
  put(policy: Policy, actions: readonly Action[]): void {
    const ofPrincipal = this.#principal(policy.principal);
    for (const action of actions) {
      const grants = ofPrincipal.get(action) ?? new PatternIndex();
      ofPrincipal.set(action, grants);
      for (const pattern of policy.resources) grants.put(pattern, policy);
    }
  }

  /** `actions` must be those with which the policy was added. */
  remove(policy: Policy, actions: readonly Action[]): void {
    const ofPrincipal = this.#byPrincipal.get(policy.principal);
    if (ofPrincipal === undefined) return;
    for (const action of actions) {
      const grants = ofPrincipal.get(action);
      for (const pattern of policy.resources) grants?.remove(pattern, policy);
      if (grants?.isEmpty) ofPrincipal.delete(action);
    }
    if (ofPrincipal.size === 0) this.#dropPrincipal(policy.principal);
  }

  get(name: PrincipalName): readonly Grants[] {
    if (this.#byPrincipal.size === 0) return NONE;
    const found: Grants[] = [];
    const principal = principalOf(name);
    const exact = this.#byPrincipal.get(principal);
    if (exact !== undefined) found.push(exact);
    for (const length of this.#prefixLengths.lengths()) {
      if (length > principal.length) continue;
      const grants = this.#byPrincipal.get(`${principal.slice(0, length)}*` as Principal);
      if (grants !== undefined) found.push(grants);
    }
    return found;
  }

  #principal(principal: Principal): Map<Action, PatternIndex> {
    const known = this.#byPrincipal.get(principal);
    if (known !== undefined) return known;
    const actions = new Map<Action, PatternIndex>();
    this.#byPrincipal.set(principal, actions);
    if (principal.endsWith('*')) this.#prefixLengths.add(prefixLength(principal));
    return actions;
  }

  #dropPrincipal(principal: Principal): void {
    this.#byPrincipal.delete(principal);
    if (principal.endsWith('*')) this.#prefixLengths.remove(prefixLength(principal));
  }
}

function prefixLength(principal: Principal): number {
  return principal.length - '*'.length;
}

export class PolicyIndex {
  readonly #byName = new Map<PolicyName, Policy>();
  readonly #grants = new PrincipalIndex();
  readonly #approvals = new PrincipalIndex();
  /** Null after a change. */
  #sorted: readonly Policy[] | null = null;
  /** No policy expires before this time. */
  #nextExpiry = Number.POSITIVE_INFINITY;

  get(name: PolicyName): Policy | null {
    return this.#byName.get(name) ?? null;
  }

  /** The policies, sorted by name. */
  all(): readonly Policy[] {
    this.#sorted ??= [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sorted;
  }

  get size(): number {
    return this.#byName.size;
  }

  put(policy: Policy): void {
    this.remove(policy.name);
    this.#byName.set(policy.name, policy);
    this.#sorted = null;
    this.#nextExpiry = Math.min(this.#nextExpiry, policy.expiresAt ?? Number.POSITIVE_INFINITY);
    this.#grants.put(policy, policy.actions);
    if (policy.approval !== null) this.#approvals.put(policy, [policy.approval.for]);
  }

  remove(name: PolicyName): void {
    const policy = this.#byName.get(name);
    if (policy === undefined) return;
    this.#byName.delete(name);
    this.#sorted = null;
    this.#grants.remove(policy, policy.actions);
    if (policy.approval !== null) this.#approvals.remove(policy, [policy.approval.for]);
  }

  /** The policies that have expired, by name. They grant until they are removed. */
  expired(now: number): Policy[] {
    if (now < this.#nextExpiry) return [];
    const all = this.all();
    this.#nextExpiry = all.reduce((next, { expiresAt }) => Math.min(next, expiresAt ?? next), Number.POSITIVE_INFINITY);
    return all.filter((policy) => hasExpired(policy, now));
  }

  /** The most restrictive policy that matches the name, the action and the path, or null. */
  findDecidingPolicy(name: PrincipalName, action: Action, path: CredentialPath): Policy | null {
    let found: Policy | null = null;
    for (const grants of this.#grants.get(name)) {
      found = stricterOf(found, grants.get(action)?.mostRestrictive(path) ?? null);
    }
    return found;
  }

  findApprovalPolicies(name: PrincipalName, action: Action, path: CredentialPath): readonly Policy[] {
    const found = this.#approvals.get(name).flatMap((grants) => grants.get(action)?.matching(path) ?? []);
    return found.length > 1 ? [...new Set(found)] : found;
  }

  /** The nearest pattern that a policy grants the agent or operator for the action; null if none does. */
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

  hasAnyPolicy(name: PrincipalName): boolean {
    return this.#grants.get(name).length > 0;
  }

  hasAction(name: PrincipalName, action: Action): boolean {
    return this.#grants.get(name).some((grants) => grants.has(action));
  }
}

// The decision: whether the current policies allow a principal an action on a path. Retrieval, renewal, simulation and
// the explanation all call `decide`. Access is denied by default; among the matching policies the most restrictive one
// decides. SOURCE: docs/decisions.md, "Policies".

export type Decision =
  | { readonly allowed: true; readonly policyName: PolicyName; readonly ttlSeconds: TtlSeconds }
  | { readonly allowed: false; readonly denial: PolicyDenial };

/** Names the first condition that no policy met. */
export type PolicyDenial = DenialOf<'no_policy' | 'no_action' | 'no_path' | 'unknown_action'>;

export function decide(policies: PolicyIndex, name: PrincipalName, action: string, path: CredentialPath): Decision {
  if (!isAction(action)) return { allowed: false, denial: { code: 'unknown_action' } };
  const policy = policies.findDecidingPolicy(name, action, path);
  if (policy !== null) return { allowed: true, policyName: policy.name, ttlSeconds: policy.maxTtlSeconds };
  const code = !policies.hasAnyPolicy(name) ? 'no_policy' : !policies.hasAction(name, action) ? 'no_action' : 'no_path';
  return { allowed: false, denial: { code, principal: name, action } };
}
