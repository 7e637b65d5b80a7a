/**
 * Plans the changes from the policies in the vault to those in files, in an order that never grants more than both, and
 * prints the plan.
 */

import { LeaseholdError } from '../../client/errors.ts';
import type { Policies } from '../../client/named-resources.ts';
import type { PolicyName } from '../../core/names.ts';
import { compare, directionOf, type FieldChange, shownFields } from '../../vault/policies/comparison.ts';
import { Policy, type PolicyDraft } from '../../vault/policies/policy.ts';
import { type Printable, toCell } from '../output/cells.ts';

export interface Step {
  readonly change: 'create' | 'replace' | 'delete';
  readonly name: PolicyName;
  /** Null for a creation. */
  readonly before: PolicyDraft | null;
  /** Null for a deletion. */
  readonly after: PolicyDraft | null;
  readonly fields: readonly FieldChange[];
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly unchanged: readonly PolicyName[];
  /** Policies of the vault that no file contains; they are not changed. */
  readonly kept: readonly PolicyName[];
}

export function makePlan(wanted: readonly PolicyDraft[], present: readonly PolicyDraft[], prunes: boolean): Plan {
  const rest = new Map(present.map((policy) => [policy.name, policy]));
  const steps: Step[] = [];
  const unchanged: PolicyName[] = [];
  for (const after of wanted) {
    const { name } = after;
    const before = rest.get(name) ?? null;
    rest.delete(name);
    const fields = before === null ? [] : compare(before, after);
    if (before !== null && fields.length === 0) unchanged.push(name);
    else steps.push({ change: before === null ? 'create' : 'replace', name, before, after, fields });
  }
  if (prunes) {
    for (const [name, before] of rest) steps.push({ change: 'delete', name, before, after: null, fields: [] });
  }
  return { steps: inOrder(steps), unchanged, kept: prunes ? [] : [...rest.keys()] };
}

/**
 * ORDER: additions, shortest leases first; swaps; removals, longest leases first. Each step is a separate change, so
 * the vault passes through intermediate states. In any order they grant only what the policies before or after grant.
 * But the most restrictive policy decides. Deleting a policy before its successor exists could allow a longer lease
 * than both, or deny a request that both allow. This order prevents that, except between several swaps. WHY not
 * removals first: renaming a policy, the most common change, would cause both.
 */
function inOrder(steps: readonly Step[]): Step[] {
  return steps
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((step) => ({ step, rank: rankOf(step) }))
    .sort((a, b) => a.rank.phase - b.rank.phase || a.rank.within - b.rank.within)
    .map(({ step }) => step);
}

function rankOf({ before, after }: Step): { phase: number; within: number } {
  const direction = before === null ? 'adds' : after === null ? 'removes' : directionOf(before, after);
  if (direction === 'adds') return { phase: 0, within: after?.maxTtlSeconds ?? 0 };
  if (direction === 'swaps') return { phase: 1, within: 0 };
  return { phase: 2, within: -(before?.maxTtlSeconds ?? 0) };
}

/** Whether a replacement grants more than before. Every creation does, so creations are not marked. */
export function widens(step: Step): boolean {
  return step.fields.some((field) => field.widens);
}

const SIGNS = { create: '+', replace: '~', delete: '-' } as const;

export function planLines(plan: Plan): string[] {
  const steps = [...plan.steps].sort((a, b) => (a.name < b.name ? -1 : 1));
  return [...steps.flatMap(stepLines), summary(plan)];
}

export function stepLines(step: Step): string[] {
  const head = `${SIGNS[step.change]} ${step.change} ${step.name}${widens(step) ? '  WIDENS ACCESS' : ''}`;
  if (step.change === 'replace') return [head, ...step.fields.map(fieldLine)];
  const policy = step.after ?? step.before;
  if (policy === null) return [head];
  const { principal, actions, resources, max_ttl, ...others } = shownFields(policy);
  const grants = `${principal} may ${toCell(actions)} ${toCell(resources)} for up to ${max_ttl} s`;
  return [head, `    ${grants}`, ...Object.entries(others).map(([field, value]) => `    ${field}: ${toCell(value)}`)];
}

function fieldLine({ field, from, to, widens: isWider }: FieldChange): string {
  return `    ${field}: ${toShown(from)} → ${toShown(to)}${isWider ? '  (wider)' : ''}`;
}

/** The shown value of a field; a missing one is an empty list. */
const toShown = (value: FieldChange['from']): string =>
  Array.isArray(value) && value.length === 0 ? 'none' : toCell(value);

function summary({ steps, unchanged, kept }: Plan): string {
  const count = (change: Step['change']): number => steps.filter((step) => step.change === change).length;
  const wider = steps.filter(widens).length;
  const left = kept.length === 0 ? '' : `; in no file, and left alone without --prune: ${kept.join(', ')}`;
  return (
    `${count('create')} to create, ${count('replace')} to replace${wider === 0 ? '' : ` (${wider} widening access)`}, ` +
    `${count('delete')} to delete, ${unchanged.length} unchanged${left}`
  );
}

export function planRecord({ steps, unchanged, kept }: Plan, isDone: boolean): Printable {
  return {
    applied: isDone,
    steps: steps.map((step) => ({
      name: step.name,
      change: step.change,
      widens: widens(step),
      fields: step.fields,
    })),
    unchanged,
    kept,
  };
}

interface ApplyCallbacks {
  readonly signal: AbortSignal;
  /** Awaits a step. Throws an error that names the conflict if the policy was changed in the meantime. */
  attempt(step: Step, work: Promise<void>): Promise<void>;
  done(step: Step): void;
  /** Called once when the plan stops early; a new plan continues from there. */
  stopped(doneSteps: number, allSteps: number): void;
}

/** @throws the error of the failed step: LeaseholdError, or the signal's reason */
export async function applyPlan({ steps }: Plan, policies: Writer, callbacks: ApplyCallbacks): Promise<void> {
  for (const [at, step] of steps.entries()) {
    try {
      callbacks.signal.throwIfAborted();
      await callbacks.attempt(step, applyStep(step, policies, callbacks.signal));
    } catch (error) {
      callbacks.stopped(at, steps.length);
      throw error;
    }
    callbacks.done(step);
  }
}

type Writer = Pick<Policies, 'put' | 'delete' | 'readTagged'>;

/**
 * Changes a policy only if it still has the state from which the plan was made. @throws LeaseholdError
 * PRECONDITION_FAILED
 */
async function applyStep({ name, before, after }: Step, policies: Writer, signal: AbortSignal): Promise<void> {
  try {
    const seen = before === null ? { onlyIfNew: true } : { ifMatch: await tagOf(before, policies, signal) };
    if (after === null) await policies.delete(name, { ...seen, signal });
    else await policies.put(name, Policy.toInput(after), { ...seen, signal });
  } catch (error) {
    // It was already deleted, possibly by a first try whose response was lost.
    const isGone = error instanceof LeaseholdError && error.code === 'NOT_FOUND';
    if (isGone && after !== null) throw preconditionFailed();
    if (!isGone) throw error;
  }
}

/** The error for a change that is based on an outdated state. */
function preconditionFailed(): LeaseholdError {
  return new LeaseholdError('PRECONDITION_FAILED', 'A precondition of the request does not hold.', { status: 412 });
}

/** WHY a second read: the list from which the plan was made contains no tags. */
async function tagOf(before: PolicyDraft, policies: Writer, signal: AbortSignal): Promise<string> {
  const { data, tag } = await policies.readTagged(before.name, { signal });
  if (compare(before, Policy.fromReply(data)).length > 0) throw preconditionFailed();
  return tag;
}
