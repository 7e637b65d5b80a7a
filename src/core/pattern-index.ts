/**
 * The policies of one principal for one action, by pattern. A query costs at most as many lookups as the path has
 * segments, plus one.
 */
import type { PolicyName } from './names.ts';
import { nearestOf } from './nearest-pattern.ts';
import type { CredentialPath } from './path.ts';
import { matchingPatterns, type PathRange, type Pattern, toRanges } from './pattern.ts';
import type { Policy } from './policy.ts';

/** Counts strings by length, so that a lookup can skip lengths that no string has. */
export class LengthMultiset {
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

export function stricterOf(a: Policy | null, b: Policy | null): Policy | null {
  if (a === null || b === null) return a ?? b;
  return compareRestriction(a, b) <= 0 ? a : b;
}

export class PatternIndex {
  /** Each pattern's policies, most restrictive first. */
  readonly #byPattern = new Map<Pattern, Policy[]>();
  readonly #lengths = new LengthMultiset();
  /** In code-point order, without the patterns that were added since, and with those that were removed. */
  #sorted: readonly Pattern[] = [];
  readonly #added = new Set<Pattern>();
  #isSorted = true;
  /** The merged ranges of all patterns; null after a change. */
  #ranges: readonly PathRange[] | null = null;

  get isEmpty(): boolean {
    return this.#byPattern.size === 0;
  }

  ranges(): readonly PathRange[] {
    this.#ranges ??= toRanges(this.#patterns());
    return this.#ranges;
  }

  /** As `nearestPattern` of all patterns. */
  nearest(path: CredentialPath): Pattern | null {
    return nearestOf(this.#patterns(), path);
  }

  /** In code-point order. */
  #patterns(): readonly Pattern[] {
    if (this.#isSorted) return this.#sorted;
    const kept = this.#sorted.filter((pattern) => this.#byPattern.has(pattern) && !this.#added.has(pattern));
    // Two runs in order are merged in linear time.
    this.#sorted = kept.concat([...this.#added].sort()).sort();
    this.#added.clear();
    this.#isSorted = true;
    return this.#sorted;
  }

  #changed(): void {
    this.#isSorted = false;
    this.#ranges = null;
  }

  put(pattern: Pattern, policy: Policy): void {
    const policies = this.#byPattern.get(pattern) ?? [];
    const next = policies.findIndex((other) => compareRestriction(other, policy) > 0);
    policies.splice(next === -1 ? policies.length : next, 0, policy);
    if (policies.length > 1) return;
    this.#changed();
    this.#added.add(pattern);
    this.#byPattern.set(pattern, policies);
    this.#lengths.add(pattern.length);
  }

  remove(pattern: Pattern, name: PolicyName): void {
    const policies = this.#byPattern.get(pattern);
    if (policies === undefined) return;
    const rest = policies.filter((other) => other.name !== name);
    if (rest.length > 0) {
      this.#byPattern.set(pattern, rest);
      return;
    }
    this.#changed();
    this.#added.delete(pattern);
    this.#byPattern.delete(pattern);
    this.#lengths.remove(pattern.length);
  }

  /** The most restrictive policy that matches the path, or null. */
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
