/** The metrics of what survives a loss: the rollback marker, checkpoints, backups, and the use of the data key. */
import { counter, gauge, type Metric } from './metric.ts';

export const EVIDENCE_METRICS: readonly Metric[] = [
  gauge(
    'leasehold_rollback_marker_unsynced_seconds',
    'Time for which the newest rollback marker has not been on disk; 0 if it is.',
    ({ marker }) => marker.unsyncedSeconds,
  ),
  counter(
    'leasehold_rollback_marker_failures_total',
    'Writes of the rollback marker that failed.',
    ({ marker }) => marker.failures,
  ),
  gauge(
    'leasehold_checkpoint_age_seconds',
    'Time since the newest checkpoint that this node knows was signed.',
    ({ vault }) => {
      const newest = vault.checkpoints.newest;
      return newest === null ? null : Math.max(0, vault.clock.now() - newest.signedAt) / 1000;
    },
  ),
  gauge(
    'leasehold_checkpoint_unsigned_entries',
    'Log entries after the newest checkpoint that this node knows.',
    ({ vault }) => Math.max(0, vault.ledger.memory.tip.seq - (vault.checkpoints.newest?.size ?? 0)),
  ),
  {
    kind: 'gauge',
    name: 'leasehold_checkpoint_waiting_seconds',
    help: 'Time for which the newest checkpoint has not been in the file; 0 if it is.',
    labels: ['file'],
    read: ({ checkpointSinks }) =>
      checkpointSinks().map(({ label, waitingSeconds }) => [{ file: label }, waitingSeconds]),
  },
  {
    kind: 'counter',
    name: 'leasehold_checkpoint_write_failures_total',
    help: 'Writes of a checkpoint to the file that failed.',
    labels: ['file'],
    read: ({ checkpointSinks }) => checkpointSinks().map(({ label, failures }) => [{ file: label }, failures]),
  },
  gauge('leasehold_data_key_seals', 'Values sealed with the current data key, at the last count.', ({ inventory }) => {
    return inventory.read()?.seals ?? null;
  }),
  gauge('leasehold_backup_age_seconds', 'Age of the newest complete backup in the log.', ({ inventory, vault }) => {
    const at = inventory.read()?.backupAt ?? null;
    return at === null ? null : Math.max(0, vault.clock.now() - at) / 1000;
  }),
];
