/**
 * Entries about the server itself: its startup and shutdown, a restore, and a backup.
 * SOURCE: docs/decisions.md, "The process" and "The audit log"; docs/backup.md.
 */

import type { Change } from '../../core/change.ts';
import { type ActorName, type EntryId, SERVICE } from '../../core/names.ts';
import { type Context, type Operation, operation, succeeded } from '../../core/operation.ts';
import { draftEntry } from './audit-entry.ts';

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
  const entry = draftEntry({ eventType, agentName: SERVICE, resource: '*', result: 'allowed', reason });
  return { reads: {}, auth: { kind: 'service' }, decide: () => succeeded(null, entry, changes) };
}

/** Runs a batch, which shows that the store works. Not recorded. */
export const NOOP: Operation<null> = {
  reads: {},
  auth: { kind: 'service' },
  decide: () => succeeded(null, null),
};

const MAX_REASON_LENGTH = 2000;

/** The reason in the entry about startup; null without warnings. */
export function warningsAsReason(warnings: readonly string[]): string | null {
  return warnings.length === 0 ? null : warnings.join(' ').slice(0, MAX_REASON_LENGTH);
}

/** A backup whose start is recorded. */
export interface StartedBackup {
  readonly entryId: EntryId;
  readonly agentName: ActorName;
}

/** Only the administrator may take a backup. */
export const startBackup = (context: Context) =>
  operation({ context, permission: 'service.backup', resource: '*' }, ({ entry, moment }) => {
    const recorded = entry('allowed');
    return succeeded({ entryId: moment.entryId, agentName: recorded.agentName }, recorded);
  });

/** `reason` says through which entry the backup goes and how long it is, or why it was cut. */
export function endBackup(
  { entryId, agentName }: StartedBackup,
  { requestId, remoteAddr }: Pick<Context, 'requestId' | 'remoteAddr'>,
  isComplete: boolean,
  reason: string,
): Operation<null> {
  return {
    reads: {},
    auth: { kind: 'service' },
    decide: () =>
      succeeded(
        null,
        draftEntry({
          eventType: 'service.backup_result',
          agentName,
          resource: '*',
          result: isComplete ? 'allowed' : 'error',
          reason,
          requestId,
          remoteAddr,
          completes: entryId,
        }),
      ),
  };
}

/** `loss` describes the lost entries in one sentence. */
export function acceptRollback(context: Context, loss: string): Operation<null> {
  return operation<null>({ context, permission: 'audit.accept_rollback', resource: '*' }, ({ entry }) =>
    succeeded(null, entry('allowed', { reason: loss })),
  );
}
