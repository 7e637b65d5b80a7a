/** Compares two policies: the fields that a replacement changes, and whether each grants more than before. */
import { APPROVAL_EXTENTS, APPROVAL_FIELDS, type ApprovalRule } from './approval-rule.ts';
import type { Pattern } from './pattern.ts';
import { LIMIT_FIELDS, type PolicyDraft, type PolicyLimits, type Principal, toLimitFields } from './policy.ts';

export interface FieldChange {
  readonly field: 'principal' | 'resources' | 'actions' | 'max_ttl' | 'limits' | 'approval';
  readonly from: string | number | readonly string[];
  readonly to: string | number | readonly string[];
  /** Whether it adds agents, paths or actions, or allows longer leases or more uses. */
  readonly widens: boolean;
}

/** Empty when the policies are equivalent; the order of a list has no effect. */
export function compare(before: PolicyDraft, after: PolicyDraft): FieldChange[] {
  const changes = [
    ['principal', before.principal, after.principal, !principalCovers(before.principal, after.principal)],
    ['resources', before.resources, after.resources, !resourcesCover(before.resources, after.resources)],
    ['actions', before.actions, after.actions, !after.actions.every((action) => before.actions.includes(action))],
    ['max_ttl', before.maxTtlSeconds, after.maxTtlSeconds, after.maxTtlSeconds > before.maxTtlSeconds],
    ['limits', limitTexts(before), limitTexts(after), !limitsCover(before.limits, after.limits)],
    ['approval', approvalTexts(before), approvalTexts(after), !approvalCovers(before.approval, after.approval)],
  ] as const;
  return changes
    .filter(([, from, to]) => new Set<unknown>([from].flat()).symmetricDifference(new Set([to].flat())).size > 0)
    .map(([field, from, to, widens]) => ({ field, from, to, widens }));
}

export function limitTexts({ limits }: PolicyDraft): readonly string[] {
  return limits === null ? [] : Object.entries(toLimitFields(limits)).map(([field, limit]) => `${field} ${limit}`);
}

export function approvalTexts({ approval }: PolicyDraft): readonly string[] {
  return approval === null ? [] : APPROVAL_FIELDS.map((field) => `${field} ${approval[field]}`);
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
  const [wide, narrow] = [outer, inner].map((limits) => (limits === null ? {} : toLimitFields(limits)));
  return LIMIT_FIELDS.every(
    (field) => (wide?.[field] ?? Number.POSITIVE_INFINITY) >= (narrow?.[field] ?? Number.POSITIVE_INFINITY),
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
