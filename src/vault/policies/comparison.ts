/** Compares two policies: the fields that a replacement changes, and whether each grants more than before. */

import type { Pattern } from '../../core/pattern.ts';
import { entriesOf, isRecord } from '../../engine/field.ts';
import { APPROVAL_EXTENTS, type ApprovalRule } from './approval-rule.ts';
import { Policy, type PolicyDraft, type PolicyLimits, type Principal } from './policy.ts';

export interface FieldChange {
  /** The name of the field in requests. */
  readonly field: string;
  /** The value is an empty list where the field is not given. */
  readonly from: Shown;
  readonly to: Shown;
  /** Whether it adds agents, paths or actions, or allows longer leases or more uses. */
  readonly widens: boolean;
}

type Shown = string | number | readonly string[];
type Compared = Exclude<keyof PolicyDraft, 'name'>;

/** Whether a change of the field grants more than before. */
const WIDENS: { readonly [K in Compared]: (before: PolicyDraft[K], after: PolicyDraft[K]) => boolean } = {
  principal: (before, after) => !principalCovers(before, after),
  resources: (before, after) => !resourcesCover(before, after),
  actions: (before, after) => !after.every((action) => before.includes(action)),
  maxTtlSeconds: (before, after) => after > before,
  limits: (before, after) => !limitsCover(before, after),
  approval: (before, after) => !approvalCovers(before, after),
};

const COMPARED = entriesOf(Policy.fields).filter(({ property }) => Object.hasOwn(WIDENS, property));

/** Empty when the policies are equivalent; the order of a list has no effect. */
export function compare(before: PolicyDraft, after: PolicyDraft): FieldChange[] {
  const [from, to] = [shownFields(before), shownFields(after)];
  return COMPARED.map(({ property, wire }) => ({
    field: wire,
    from: from[wire] ?? [],
    to: to[wire] ?? [],
    widens: widens(property as Compared, before, after),
  })).filter((change) => {
    const [old, current] = [change.from, change.to].map((shown) => new Set<unknown>([shown].flat()));
    return old !== undefined && current !== undefined && old.symmetricDifference(current).size > 0;
  });
}

function widens<K extends Compared>(property: K, before: PolicyDraft, after: PolicyDraft): boolean {
  return WIDENS[property](before[property], after[property]);
}

/** The given fields except the name, keyed by their names in requests. A record is a list of `field value`. */
export function shownFields(draft: PolicyDraft): Readonly<Record<string, Shown>> {
  const given = Policy.toInput(draft) as Readonly<Record<string, unknown>>;
  const shown = COMPARED.flatMap(({ wire }): [string, Shown][] => {
    const value = given[wire];
    if (value === undefined) return [];
    return [
      [wire, isRecord(value) ? Object.entries(value).map(([name, each]) => `${name} ${each}`) : (value as Shown)],
    ];
  });
  return Object.fromEntries(shown);
}

/** Whether `inner` demands at least what `outer` does. A rule that differs in its scope counts as wider. */
export function approvalCovers(outer: ApprovalRule | null, inner: ApprovalRule | null): boolean {
  if (outer === null || inner === null) return outer === null;
  const isNarrower = APPROVAL_EXTENTS.indexOf(inner.each) <= APPROVAL_EXTENTS.indexOf(outer.each);
  const isSameScope = inner.scope === outer.scope || inner.scope === 'once';
  return inner.for === outer.for && isNarrower && isSameScope && inner.quorum >= outer.quorum;
}

/** Whether `outer` allows every use that `inner` allows. */
function limitsCover(outer: PolicyLimits | null, inner: PolicyLimits | null): boolean {
  if (outer === null || inner === null) return outer === null;
  return Object.entries(outer).every(
    ([name, limit]) => limit === null || (inner[name as keyof PolicyLimits] ?? Number.POSITIVE_INFINITY) <= limit,
  );
}

/**
 * `adds`: grants at least what was granted, for shorter or equal leases. `removes`: grants at most what was granted,
 * for any time. `swaps`: neither. WHY not symmetric: the most restrictive policy decides, so a shorter lease tightens,
 * and a plan needs an unambiguous order.
 */
export function directionOf(before: PolicyDraft, after: PolicyDraft): 'adds' | 'removes' | 'swaps' {
  if (grantsAllOf(after, before) && after.maxTtlSeconds <= before.maxTtlSeconds) return 'adds';
  if (grantsAllOf(before, after)) return 'removes';
  return 'swaps';
}

/** Whether every agent that `inner` names is named by `outer`. */
export function principalCovers(outer: Principal, inner: Principal): boolean {
  return outer === inner || (outer.endsWith('*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether every path that `inner` matches is matched by `outer`. */
export function patternCovers(outer: Pattern, inner: Pattern): boolean {
  return outer === inner || outer === '*' || (outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1)));
}

function resourcesCover(outer: readonly Pattern[], inner: readonly Pattern[]): boolean {
  return inner.every((pattern) => outer.some((wider) => patternCovers(wider, pattern)));
}

/** Whether `outer` grants all that `inner` grants, however long. */
export function grantsAllOf(outer: PolicyDraft, inner: PolicyDraft): boolean {
  return (
    principalCovers(outer.principal, inner.principal) &&
    inner.actions.every((action) => outer.actions.includes(action)) &&
    resourcesCover(outer.resources, inner.resources)
  );
}
