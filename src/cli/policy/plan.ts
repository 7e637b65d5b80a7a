/**
 * Plans the changes from the policies in the vault to those in files, in an order that never grants more than both, and
 * prints the plan.
 */

import type { PolicyName } from '../../core/names.ts';
import type { PolicyDraft } from '../../core/policy.ts';
import { type Printable, toCell } from '../output/cells.ts';
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
  /** In the order of execution. */
  readonly steps: readonly Step[];
  readonly unchanged: readonly PolicyName[];
  /** In the vault but in no file, and not changed. */
  readonly kept: readonly PolicyName[];
}

/** `prunes`: policies that no file contains are deleted. */
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
 * ORDER: additions, shortest leases first; swaps; removals, longest leases first. Each step is a separate change, so
 * the vault has intermediate states. In any order they grant only what the policies before or after grant. But the most
 * restrictive policy decides, so deleting a policy before its successor exists could allow a longer lease than both, or
 * deny what both allow. This order prevents that, except between several swaps. WHY not removals first: renaming a
 * policy, the most common change, would cause both.
 */
function inOrder(steps: readonly Step[]): Step[] {
  const rows = steps.map((step) => ({ step, place: rankOf(step) }));
  const compareNames = (a: Step, b: Step): number => (a.name < b.name ? -1 : 1);
  rows.sort((a, b) => a.place.phase - b.place.phase || a.place.within - b.place.within || compareNames(a.step, b.step));
  return rows.map(({ step }) => step);
}

function rankOf(step: Step): { phase: number; within: number } {
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

/** Whether a replacement grants more than before. Every creation does, so creations are not marked. */
export function widens(step: Step): boolean {
  return step.change === 'replace' && step.fields.some((field) => field.widens);
}

const SIGNS = { create: '+', replace: '~', delete: '-' } as const;

/** Lines for the user: each changed policy by name, then the number of changes of each kind. */
export function planLines(plan: Plan): string[] {
  const steps = [...plan.steps].sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...steps.flatMap(stepLines), summary(plan)];
}

/** The lines of one policy. */
export function stepLines(step: Step): string[] {
  const mark = widens(step) ? '  WIDENS ACCESS' : '';
  const head = `${SIGNS[step.change]} ${step.change} ${step.name}${mark}`;
  switch (step.change) {
    case 'create':
      return [head, ...grantLines(step.after)];
    case 'delete':
      return [head, ...grantLines(step.before)];
    case 'replace':
      return [head, ...step.fields.map(fieldLine)];
  }
}

function grantLines({ principal, actions, resources, maxTtlSeconds }: PolicyDraft): string[] {
  return [`    ${principal} may ${actions.join(', ')} ${resources.join(', ')} for up to ${maxTtlSeconds} s`];
}

function fieldLine({ field, from, to, widens: isWider }: FieldChange): string {
  return `    ${field}: ${toCell(from)} → ${toCell(to)}${isWider ? '  (wider)' : ''}`;
}

/** One sentence with the number of changes of each kind. */
function summary({ steps, unchanged, kept }: Plan): string {
  const count = (change: Step['change']): number => steps.filter((step) => step.change === change).length;
  const wider = steps.filter(widens).length;
  const left = kept.length === 0 ? '' : `; in no file, and left alone without --prune: ${kept.join(', ')}`;
  return (
    `${count('create')} to create, ${count('replace')} to replace${wider === 0 ? '' : ` (${wider} widening access)`}, ` +
    `${count('delete')} to delete, ${unchanged.length} unchanged${left}`
  );
}

/** One record for programs, with the steps in the order of execution. */
export function planRecord({ steps, unchanged, kept }: Plan, isDone: boolean): Printable {
  return {
    applied: isDone,
    steps: steps.map((step) => ({
      name: step.name,
      change: step.change,
      widens: widens(step),
      fields: step.change === 'replace' ? step.fields : [],
    })),
    unchanged,
    kept,
  };
}
