/** Policies by principal, action and pattern: a lookup finds the principals that match a name, not all of them. */
import type { PrincipalName } from './names.ts';
import { LengthMultiset, PatternIndex } from './pattern-index.ts';
import { type Action, type Policy, type Principal, principalOf } from './policy.ts';

const MAX_CACHED_NAMES = 10_000;

/** The policies of one principal. */
type Grants = ReadonlyMap<Action, PatternIndex>;

const NONE: readonly Grants[] = [];

export class PrincipalIndex {
  readonly #byPrincipal = new Map<Principal, Map<Action, PatternIndex>>();
  /** The lengths of the principals with `*`, without it. */
  readonly #prefixLengths = new LengthMultiset();
  /** Caches `#find`. It is cleared when a principal is added or removed. */
  readonly #byName = new Map<PrincipalName, readonly Grants[]>();

  /** Adds the policy for the actions. It must not be there. */
  put(policy: Policy, actions: readonly Action[]): void {
    const ofPrincipal = this.#principal(policy.principal);
    for (const action of actions) {
      const grants = ofPrincipal.get(action) ?? new PatternIndex();
      ofPrincipal.set(action, grants);
      for (const pattern of policy.resources) grants.put(pattern, policy);
    }
  }

  /** With the actions with which it was added. */
  remove(policy: Policy, actions: readonly Action[]): void {
    const ofPrincipal = this.#byPrincipal.get(policy.principal);
    if (ofPrincipal === undefined) return;
    for (const action of actions) {
      const grants = ofPrincipal.get(action);
      for (const pattern of policy.resources) grants?.remove(pattern, policy.name);
      if (grants?.isEmpty) ofPrincipal.delete(action);
    }
    if (ofPrincipal.size === 0) this.#dropPrincipal(policy.principal);
  }

  /** The policies of every principal that matches the name. */
  get(name: PrincipalName): readonly Grants[] {
    if (this.#byPrincipal.size === 0) return NONE;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const found = this.#find(name);
    // A simulation may ask for any name, so the cache needs a limit.
    if (this.#byName.size >= MAX_CACHED_NAMES) this.#byName.clear();
    this.#byName.set(name, found);
    return found;
  }

  #find(name: PrincipalName): Grants[] {
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
    this.#byName.clear();
    if (principal.endsWith('*')) this.#prefixLengths.add(prefixLength(principal));
    return actions;
  }

  #dropPrincipal(principal: Principal): void {
    this.#byPrincipal.delete(principal);
    this.#byName.clear();
    if (principal.endsWith('*')) this.#prefixLengths.remove(prefixLength(principal));
  }
}

function prefixLength(principal: Principal): number {
  return principal.length - '*'.length;
}
