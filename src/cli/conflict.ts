/** Reports conflicting changes: who changed a resource after a command read it. */
import { LeaseholdError } from '../client/errors.ts';
import type { EventType } from '../vault/audit/audit-entry.ts';
import type { Invocation } from './command.ts';
import { ErrorWithHint } from './explain-denial.ts';

interface Subject {
  /** Subject of the message, such as `Policy ci`. */
  readonly what: string;
  /** The resource name in the audit entries of its changes. */
  readonly resource: string;
  readonly events: readonly EventType[];
}

export const policySubject = (name: string): Subject => ({
  what: `Policy ${name} was`,
  resource: `policy:${name}`,
  events: ['policy.create', 'policy.replace', 'policy.delete'],
});

export const operatorSubject = (name: string): Subject => ({
  what: `Operator ${name} was`,
  resource: `operator:${name}`,
  events: ['operator.replace', 'operator.rotate', 'operator.remove', 'operator.passkey_add', 'operator.passkey_remove'],
});

export const targetsSubject = (path: string): Subject => ({
  what: `The targets of ${path} were`,
  resource: path,
  events: ['target.put', 'target.delete'],
});

/** The error for a change that is based on an outdated state. */
export function changedMeanwhile(): LeaseholdError {
  return new LeaseholdError('PRECONDITION_FAILED', 'A precondition of the request does not hold.', { status: 412 });
}

/** Awaits `work`, which fails if the subject was changed in the meantime. @throws ErrorWithHint, LeaseholdError */
export async function withConflictHint<T>(invocation: Invocation, subject: Subject, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'PRECONDITION_FAILED') throw error;
    const { what, resource, events } = subject;
    // An agent may not read the audit log.
    const change = await invocation
      .connect()
      .audit.lastChange(resource, events, invocation)
      .catch(() => null);
    const by = change === null ? '' : ` by ${change.agent_name} at ${change.timestamp}`;
    const { status, requestId } = error;
    const told = new LeaseholdError(error.code, `${what} changed${by}, since this command read it`, {
      requestId,
      ...(status === null ? {} : { status }),
    });
    throw new ErrorWithHint(told, 'It was left as it is. Run the command again to see the present state.');
  }
}
