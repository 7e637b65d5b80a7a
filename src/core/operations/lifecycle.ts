/** Operations of the service itself. SOURCE: docs/decisions.md, "The process" and "The audit log". */
import { SERVICE } from '../names.ts';
import { type Operation, succeeded } from '../operation.ts';

/** Recorded at each start and each orderly stop. `reason` holds warnings for the operator, or null. */
export function serviceEvent(eventType: 'service.start' | 'service.stop', reason: string | null): Operation<null> {
  return {
    reads: {},
    requester: { kind: 'service' },
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

/** Runs a batch, which shows that the store works. Not recorded. */
export const NOOP: Operation<null> = {
  reads: {},
  requester: { kind: 'service' },
  decide: () => succeeded(null, null),
};
