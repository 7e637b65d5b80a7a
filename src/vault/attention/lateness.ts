/** Copies of the log and the vault that are late, with the limits of the alerts in docs/monitoring.md. */

import type { AttentionItem } from '../../core/attention.ts';
import { readEntries } from '../../store/audit-log.ts';
import type { Lateness } from '../node-facts.ts';
import type { AttentionPart, AttentionVault } from './part.ts';

const MAX_ANCHOR_SECONDS = 30;
const MAX_CHECKPOINT_SECONDS = 300;
const MAX_BACKUP_MS = 2 * 24 * 3_600_000;

export interface EvidenceAges extends Lateness {
  /** When the newest checkpoint was signed, if entries follow it; null otherwise. */
  readonly unsignedSince: number | null;
  /** When the vault began; null if it has no entry. */
  readonly begunAt: number | null;
}

export async function examineEvidence(vault: AttentionVault): Promise<AttentionPart> {
  const { store, checkpoints, ledger, node, clock } = vault;
  const { newest } = checkpoints;
  const isUnsigned = newest !== null && ledger.memory.tip.seq > newest.size;
  const [first] = await store.run(readEntries(1, 1, 1));
  const begunAt = first === undefined ? Number.NaN : Date.parse(first.timestamp);
  const ages = {
    ...node.lateness(),
    unsignedSince: isUnsigned ? newest.signedAt : null,
    begunAt: Number.isNaN(begunAt) ? null : begunAt,
  };
  return { items: lateItems(ages, clock.now()), isComplete: true };
}

export function lateItems(
  { anchorSeconds, deliveries, backupAt, unsignedSince, begunAt }: EvidenceAges,
  now: number,
): AttentionItem[] {
  const items: AttentionItem[] = [];
  const add = (kind: AttentionItem['kind'], since: number | null, text: string): void =>
    void items.push({ kind, subject: '*', text, count: null, since });
  if (anchorSeconds > MAX_ANCHOR_SECONDS) {
    const text =
      'The anchor of the log could not be written to the data directory. Check the disk and its permissions.';
    add('anchor_late', now - Math.round(anchorSeconds * 1000), text);
  }
  if (unsignedSince !== null && now - unsignedSince > MAX_CHECKPOINT_SECONDS * 1000) {
    const text = 'Entries of the log have no signed checkpoint yet. The log of the service has the cause.';
    add('checkpoint_late', unsignedSince, text);
  }
  for (const { label, waitingSeconds } of deliveries) {
    if (waitingSeconds <= MAX_CHECKPOINT_SECONDS) continue;
    const text = `The destination ${label} has not confirmed a checkpoint. Check that it can be reached.`;
    add('checkpoint_late', now - Math.round(waitingSeconds * 1000), text);
  }
  const backupSince = backupAt === null ? begunAt : (backupAt ?? null);
  if (backupSince !== null && now - backupSince > MAX_BACKUP_MS) {
    const what = backupAt === null ? 'The log has no complete backup.' : 'The newest complete backup is old.';
    add('backup_late', backupSince, `${what} Run leasehold backup, or check the schedule.`);
  }
  return items;
}
