/** The metrics of what survives a loss: anchors and checkpoints of the log, backups, and the use of the data key. */
import { counter, gauge, type Metric } from './metric.ts';

export const EVIDENCE_METRICS: readonly Metric[] = [
  gauge(
    'leasehold_anchor_unsynced_seconds',
    'Time for which the newest anchor of the log has not been on disk; 0 if it is.',
    ({ anchor }) => anchor.unsyncedSeconds,
  ),
  counter('leasehold_anchor_failures_total', 'Writes of the anchor that failed.', ({ anchor }) => anchor.failures),
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
    help: 'Time for which the destination has not confirmed a checkpoint; 0 if it has the newest.',
    labels: ['destination'],
    read: ({ destinations }) =>
      destinations().map(({ label, waitingSeconds }) => [{ destination: label }, waitingSeconds]),
  },
  {
    kind: 'counter',
    name: 'leasehold_checkpoint_delivery_failures_total',
    help: 'Attempts to send a checkpoint to the destination that failed.',
    labels: ['destination'],
    read: ({ destinations }) => destinations().map(({ label, failures }) => [{ destination: label }, failures]),
  },
  gauge('leasehold_data_key_seals', 'Values sealed with the current data key, at the last count.', ({ inventory }) => {
    return inventory.read()?.seals ?? null;
  }),
  gauge('leasehold_backup_age_seconds', 'Age of the newest complete backup in the log.', ({ inventory, vault }) => {
    const at = inventory.read()?.backupAt ?? null;
    return at === null ? null : Math.max(0, vault.clock.now() - at) / 1000;
  }),
];
