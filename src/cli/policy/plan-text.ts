/** A plan, for people to read before it is done, and for programs. */
import type { PolicyDraft } from '../../core/policy.ts';
import { type Printable, toCell } from '../output/cells.ts';
import type { FieldChange } from './comparison.ts';
import { type Plan, type Step, widens } from './plan.ts';

const SIGNS = { create: '+', replace: '~', delete: '-' } as const;

/** Lines for people: each policy that changes, by name, then how many of each kind. */
export function planLines(plan: Plan): string[] {
  const steps = [...plan.steps].sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...steps.flatMap(stepLines), summary(plan)];
}

/** Of one policy, for people. */
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

/** In a sentence: how many of each kind. */
function summary({ steps, unchanged, kept }: Plan): string {
  const count = (change: Step['change']): number => steps.filter((step) => step.change === change).length;
  const wider = steps.filter(widens).length;
  const left = kept.length === 0 ? '' : `; in no file, and left alone without --prune: ${kept.join(', ')}`;
  return (
    `${count('create')} to create, ${count('replace')} to replace${wider === 0 ? '' : ` (${wider} widening access)`}, ` +
    `${count('delete')} to delete, ${unchanged.length} unchanged${left}`
  );
}

/** One record for programs, steps in the order in which they are done. */
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
