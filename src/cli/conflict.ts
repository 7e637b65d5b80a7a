/** Reports conflicting changes: who changed a resource after a command read it. */
import { LeaseholdError } from '../client/errors.ts';
import type { EventType } from '../core/permissions.ts';
import { CHANGE_EVENTS } from '../vault/audit/audit-entry.ts';
import type { Invocation } from './command.ts';
import { ErrorWithHint } from './explain-denial.ts';

interface Subject {
  /** Subject of the message, such as `policy ci`. */
  readonly what: string;
  /** The resource name in the audit entries of its changes. */
  readonly resource: string;
  readonly events: readonly EventType[];
}

export const policySubject = (name: string): Subject => ({
  what: `policy ${name}`,
  resource: `policy:${name}`,
  events: CHANGE_EVENTS.policy,
});

export const credentialSubject = (path: string): Subject => ({
  what: `credential ${path}`,
  resource: path,
  events: CHANGE_EVENTS.credential,
});

export const agentSubject = (name: string): Subject => ({
  what: `agent ${name}`,
  resource: `agent:${name}`,
  events: CHANGE_EVENTS.agent,
});

export const operatorSubject = (name: string): Subject => ({
  what: `operator ${name}`,
  resource: `operator:${name}`,
  events: CHANGE_EVENTS.operator,
});

export const targetsSubject = (path: string): Subject => ({
  what: `the targets of ${path}`,
  resource: path,
  events: CHANGE_EVENTS.targets,
});

/** The error for a change that is based on an outdated state. */
export function preconditionFailed(): LeaseholdError {
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
    const who = change === null ? 'Another request' : change.agent_name;
    const when = change === null ? '' : ` at ${change.timestamp}`;
    const { status, requestId } = error;
    const told = new LeaseholdError(error.code, `${who} changed ${what}${when} after this command read it`, {
      requestId,
      ...(status === null ? {} : { status }),
    });
    throw new ErrorWithHint(told, 'The command changed nothing there. Run it again to see the current state.');
  }
}
