/** The service's own entries. SOURCE: decisions, "The product" and "Audit". */
import { SERVICE } from '../names.ts';
import { type Operation, succeeded } from '../operation.ts';

/** Recorded at each start and each orderly stop. `reason` says what an operator should know of it, or null. */
export function serviceEvent(eventType: 'service.start' | 'service.stop', reason: string | null): Operation<null> {
  return {
    reads: {},
    session: null,
    fairnessKey: SERVICE,
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

/** Not recorded: shows that a turn can be taken. */
export const NOOP: Operation<null> = {
  reads: {},
  session: null,
  fairnessKey: SERVICE,
  sizeBytes: 0,
  decide: () => succeeded(null, null),
};
