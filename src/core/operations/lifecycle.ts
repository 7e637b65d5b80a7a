/** Operations of the service itself. SOURCE: docs/decisions.md, "The process" and "The audit log". */
import type { EntryDraft } from '../audit.ts';
import type { Change } from '../change.ts';
import { SERVICE } from '../names.ts';
import { type Operation, succeeded } from '../operation.ts';

type ServiceEvent = 'service.start' | 'service.stop' | 'service.unlock' | 'service.restore';

/**
 * Recorded at each start, at each orderly stop and after a restore. `reason` holds warnings for the operator, or the
 * backup that was restored, or null.
 */
export function serviceEvent(
  eventType: ServiceEvent,
  reason: string | null,
  changes: readonly Change[] = [],
): Operation<null> {
  const entry = entryOf(eventType, reason);
  return { reads: {}, requester: { kind: 'service' }, decide: () => succeeded(null, entry, changes) };
}

function entryOf(eventType: ServiceEvent, reason: string | null): EntryDraft {
  return {
    eventType,
    agentName: SERVICE,
    resource: '*',
    result: 'allowed',
    policyName: null,
    leaseId: null,
    reason,
    requestId: null,
    remoteAddr: null,
  };
}

/** Runs a batch, which shows that the store works. Not recorded. */
export const NOOP: Operation<null> = {
  reads: {},
  requester: { kind: 'service' },
  decide: () => succeeded(null, null),
};

const MAX_REASON_LENGTH = 2000;

/** For the entry of a start; null without warnings. */
export function warningsAsReason(warnings: readonly string[]): string | null {
  return warnings.length === 0 ? null : warnings.join(' ').slice(0, MAX_REASON_LENGTH);
}
