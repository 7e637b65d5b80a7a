/** Executes the steps of a plan in order, and reports the progress when a step fails. */

import { LeaseholdError } from '../../client/errors.ts';
import type { Policies } from '../../client/policies.ts';
import { toReplacement } from '../../client/policy-drafts.ts';
import type { Plan, Step } from './plan.ts';

interface ApplyCallbacks {
  readonly signal: AbortSignal;
  /** Called after each step. */
  done(step: Step): void;
  /** Called once when the plan stops early; a new plan continues from there. */
  stopped(doneSteps: number, allSteps: number): void;
}

/** @throws the error of the failed step: LeaseholdError, or the signal's reason */
export async function applyPlan({ steps }: Plan, policies: Writer, callbacks: ApplyCallbacks): Promise<void> {
  for (const [at, step] of steps.entries()) {
    try {
      callbacks.signal.throwIfAborted();
      await applyStep(step, policies, callbacks.signal);
    } catch (error) {
      callbacks.stopped(at, steps.length);
      throw error;
    }
    callbacks.done(step);
  }
}

type Writer = Pick<Policies, 'put' | 'delete'>;

async function applyStep({ name, after }: Step, policies: Writer, signal: AbortSignal): Promise<void> {
  try {
    if (after === null) await policies.delete(name, { signal });
    else await policies.put(name, toReplacement(after), { signal });
  } catch (error) {
    // Another caller has deleted it, or a retried request of ours had succeeded.
    const isDeleted = after === null && error instanceof LeaseholdError && error.code === 'NOT_FOUND';
    if (!isDeleted) throw error;
  }
}
