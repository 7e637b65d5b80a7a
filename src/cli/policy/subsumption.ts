/** Which of two policies grants what the other grants, told from their words alone. Both kinds of pattern nest: two meet only where one covers the other. */
import type { Pattern } from '../../core/pattern.ts';
import type { PolicyDraft, Principal } from '../../core/policy.ts';

/** Whether every agent that `inner` names is named by `outer`. */
export function principalCovers(outer: Principal, inner: Principal): boolean {
  return outer === inner || (outer.endsWith('*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether every path that `inner` matches is matched by `outer`. */
export function patternCovers(outer: Pattern, inner: Pattern): boolean {
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
