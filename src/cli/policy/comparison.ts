/** Compares two policies: the fields that a replacement changes, and whether each grants more than before. */
import type { Pattern } from '../../core/pattern.ts';
import type { PolicyDraft, Principal } from '../../core/policy.ts';

type Field = 'principal' | 'resources' | 'actions' | 'max_ttl';

export interface FieldChange {
  readonly field: Field;
  readonly from: string | number | readonly string[];
  readonly to: string | number | readonly string[];
  /** Whether it adds agents, paths or actions, or allows longer leases. */
  readonly widens: boolean;
}

/** Empty when the policies are equivalent; the order of a list has no effect. */
export function compare(before: PolicyDraft, after: PolicyDraft): FieldChange[] {
  const changes: FieldChange[] = [];
  if (before.principal !== after.principal) {
    const widens = !principalCovers(before.principal, after.principal);
    changes.push({ field: 'principal', from: before.principal, to: after.principal, widens });
  }
  if (!isSameSet(before.resources, after.resources)) {
    const widens = !after.resources.every((pattern) => before.resources.some((wider) => patternCovers(wider, pattern)));
    changes.push({ field: 'resources', from: before.resources, to: after.resources, widens });
  }
  if (!isSameSet(before.actions, after.actions)) {
    const widens = !after.actions.every((action) => before.actions.includes(action));
    changes.push({ field: 'actions', from: before.actions, to: after.actions, widens });
  }
  if (before.maxTtlSeconds !== after.maxTtlSeconds) {
    const widens = after.maxTtlSeconds > before.maxTtlSeconds;
    changes.push({ field: 'max_ttl', from: before.maxTtlSeconds, to: after.maxTtlSeconds, widens });
  }
  return changes;
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const all = new Set(a);
  return all.size === new Set(b).size && b.every((item) => all.has(item));
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
function principalCovers(outer: Principal, inner: Principal): boolean {
  return outer === inner || (outer.endsWith('*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether every path that `inner` matches is matched by `outer`. */
function patternCovers(outer: Pattern, inner: Pattern): boolean {
  return outer === inner || outer === '*' || (outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether `outer` grants all that `inner` grants, however long. */
export function grantsAllOf(outer: PolicyDraft, inner: PolicyDraft): boolean {
  return (
    principalCovers(outer.principal, inner.principal) &&
    inner.actions.every((action) => outer.actions.includes(action)) &&
    inner.resources.every((pattern) => outer.resources.some((wider) => patternCovers(wider, pattern)))
  );
}

/** Whether some agent and path are common to both. */
export function overlaps(a: Grant, b: Grant): boolean {
  return (
    a.action === b.action &&
    (principalCovers(a.principal, b.principal) || principalCovers(b.principal, a.principal)) &&
    (patternCovers(a.pattern, b.pattern) || patternCovers(b.pattern, a.pattern))
  );
}

/** One action of a policy on one of its patterns. */
export interface Grant {
  readonly principal: Principal;
  readonly action: PolicyDraft['actions'][number];
  readonly pattern: Pattern;
}

export function grantsOf({ principal, actions, resources }: PolicyDraft): Grant[] {
  return actions.flatMap((action) => resources.map((pattern) => ({ principal, action, pattern })));
}
