/** From the policies in files and those in the vault to what is to be done, in an order that grants nothing extra on the way. */
import type { PolicyName } from '../../core/names.ts';
import type { PolicyDraft } from '../../core/policy.ts';
import { compare, directionOf, type FieldChange } from './comparison.ts';

export type Step =
  | { readonly change: 'create'; readonly name: PolicyName; readonly after: PolicyDraft }
  | {
      readonly change: 'replace';
      readonly name: PolicyName;
      readonly before: PolicyDraft;
      readonly after: PolicyDraft;
      readonly fields: readonly FieldChange[];
    }
  | { readonly change: 'delete'; readonly name: PolicyName; readonly before: PolicyDraft };

export interface Plan {
  /** In the order in which they are done. */
  readonly steps: readonly Step[];
  readonly unchanged: readonly PolicyName[];
  /** In the vault, in no file, and left alone. */
  readonly kept: readonly PolicyName[];
}

/** `prunes`: what no file has is deleted. */
export function makePlan(wanted: readonly PolicyDraft[], present: readonly PolicyDraft[], prunes: boolean): Plan {
  const before = new Map(present.map((policy) => [policy.name, policy]));
  const steps: Step[] = [];
  const unchanged: PolicyName[] = [];
  for (const after of wanted) {
    const { name } = after;
    const known = before.get(name);
    before.delete(name);
    const fields = known === undefined ? [] : compare(known, after);
    if (known === undefined) steps.push({ change: 'create', name, after });
    else if (fields.length > 0) steps.push({ change: 'replace', name, before: known, after, fields });
    else unchanged.push(name);
  }
  const rest = [...before.values()];
  if (prunes) steps.push(...rest.map((policy): Step => ({ change: 'delete', name: policy.name, before: policy })));
  return { steps: inOrder(steps), unchanged, kept: prunes ? [] : rest.map(({ name }) => name) };
}

/**
 * ORDER: what adds, the shortest leases first; what swaps; what removes, the longest leases first. Each step is a change of its own, so
 * there are moments between them. Whatever the order, nothing is granted then that neither the policies before nor those after grant.
 * But the most restrictive policy decides, so one that goes before its successor has come may leave a longer lease than both allow, and
 * refuses meanwhile what both allow. In this order neither happens. Of several that swap with each other no order is without
 * such a moment. WHY not removals first: renaming a policy, the commonest change of files, would do both.
 */
function inOrder(steps: readonly Step[]): Step[] {
  const rows = steps.map((step) => ({ step, place: placeOf(step) }));
  const compareNames = (a: Step, b: Step): number => (a.name < b.name ? -1 : 1);
  rows.sort((a, b) => a.place.phase - b.place.phase || a.place.within - b.place.within || compareNames(a.step, b.step));
  return rows.map(({ step }) => step);
}

function placeOf(step: Step): { phase: number; within: number } {
  switch (step.change) {
    case 'create':
      return { phase: 0, within: step.after.maxTtlSeconds };
    case 'delete':
      return { phase: 2, within: -step.before.maxTtlSeconds };
    case 'replace': {
      const { before, after } = step;
      switch (directionOf(before, after)) {
        case 'adds':
          return { phase: 0, within: after.maxTtlSeconds };
        case 'swaps':
          return { phase: 1, within: 0 };
        case 'removes':
          return { phase: 2, within: -before.maxTtlSeconds };
      }
    }
  }
}

/** Whether it gives anybody more than before: a replacement in a field. Every creation does, and is no news. */
export function widens(step: Step): boolean {
  return step.change === 'replace' && step.fields.some((field) => field.widens);
}
