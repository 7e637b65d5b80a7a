/** The two entries of a backup: its start, before the first byte leaves, and its end. SOURCE: docs/backup.md. */
import type { ActorName, EntryId } from '../names.ts';
import { type Context, type Operation, operation, succeeded } from '../operation.ts';
import { adminOperation } from './admin-read.ts';

/** A backup whose start is recorded. */
export interface StartedBackup {
  readonly entryId: EntryId;
  readonly agentName: ActorName;
}

/** Only the administrator may take a backup. */
export const startBackup = adminOperation<[], StartedBackup>('service.backup', (spec) =>
  operation({ ...spec, resource: '*' }, ({ entry, moment }) => {
    const recorded = entry('allowed');
    return succeeded({ entryId: moment.entryId, agentName: recorded.agentName }, recorded);
  }),
);

/** `reason` says through which entry the backup goes and how long it is, or why it was cut. */
export function endBackup(
  { entryId, agentName }: StartedBackup,
  { requestId, remoteAddr }: Pick<Context, 'requestId' | 'remoteAddr'>,
  isComplete: boolean,
  reason: string,
): Operation<null> {
  return {
    reads: {},
    requester: { kind: 'service' },
    decide: () =>
      succeeded(null, {
        eventType: 'service.backup_result',
        agentName,
        resource: '*',
        result: isComplete ? 'allowed' : 'error',
        policyName: null,
        leaseId: null,
        reason,
        requestId,
        remoteAddr,
        completes: entryId,
      }),
  };
}
