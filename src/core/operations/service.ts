/** The service's own entries, and the administrator's reads. SOURCE: decisions, "The product" and "Audit". */
import type { EventType } from '../audit.ts';
import { Fault } from '../fault.ts';
import { SERVICE } from '../names.ts';
import { type Context, type Operation, operation, refused, succeeded } from '../operation.ts';
import type { Workspace } from '../workspace.ts';

/** Recorded at each start and each orderly stop. `reason` says what an operator should know of it, or null. */
export function serviceEvent(eventType: 'service.start' | 'service.stop', reason: string | null): Operation<null> {
  return {
    keys: {},
    sizeBytes: 0,
    decide: () =>
      succeeded(null, {
        eventType,
        agentName: SERVICE,
        resource: '*',
        result: 'allowed',
        policyName: null,
        leaseId: null,
        reason,
        requestId: null,
        remoteAddr: null,
      }),
  };
}

/** An administrator's look, which is not recorded; an agent's try is refused and recorded. */
export function adminRead<R>(
  context: Context,
  event: EventType,
  resource: string,
  read: (known: Workspace) => R | Fault,
): Operation<R> {
  return operation({ context, event, resource, who: 'admin' }, ({ known }) => {
    const seen = read(known);
    return seen instanceof Fault ? refused(seen.code, seen.message, null) : succeeded(seen, null);
  });
}
