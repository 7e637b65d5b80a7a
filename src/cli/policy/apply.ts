/** Does what a plan says, one step after the other, and tells how far it came where one fails. */

import { LeaseholdError } from '../../client/errors.ts';
import type { Policies } from '../../client/policies.ts';
import { toReplacement } from './fields.ts';
import type { Plan, Step } from './plan.ts';

interface ApplyCallbacks {
  readonly signal: AbortSignal;
  /** Told after each step. */
  done(step: Step): void;
  /** Told once where it ends early; the same plan made anew goes on from there. */
  stopped(doneSteps: number, allSteps: number): void;
}

/** @throws what the step that failed threw: LeaseholdError, or the signal's reason */
export async function applyPlan(
  { steps }: Plan,
  policies: Pick<Policies, 'put' | 'delete'>,
  way: ApplyCallbacks,
): Promise<void> {
  for (const [at, step] of steps.entries()) {
    try {
      way.signal.throwIfAborted();
      await applyStep(step, policies, way.signal);
    } catch (error) {
      way.stopped(at, steps.length);
      throw error;
    }
    way.done(step);
  }
}

async function applyStep(step: Step, policies: Pick<Policies, 'put' | 'delete'>, signal: AbortSignal): Promise<void> {
  if (step.change !== 'delete') {
    await policies.put(step.name, toReplacement(step.after), { signal });
    return;
  }
  try {
    await policies.delete(step.name, { signal });
  } catch (error) {
    // Somebody else deleted it meanwhile, or this call did and its answer was lost.
    if (!(error instanceof LeaseholdError && error.code === 'NOT_FOUND')) throw error;
  }
}
