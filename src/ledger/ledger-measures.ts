/** What the ledger counts: its batches, and the entries and changes that they committed. */
import type { AuditEntry } from '../core/audit.ts';
import { Distribution, LastHour, PairTally, Tally } from '../core/measures.ts';
import type { StoredChange } from '../store/store.ts';
import { DENIAL_REASONS } from '../vault/policies/decision.ts';

export class LedgerMeasures {
  /** `empty`: nothing was written. */
  readonly batches = new Tally<'committed' | 'empty' | 'failed'>(['committed', 'empty', 'failed']);
  readonly batchSizes = new Distribution([1, 2, 4, 8, 16, 32, 64, 128, 256]);
  readonly writeSeconds = new Distribution();
  /** The time from the write of a batch until it is durable. */
  readonly durableSeconds = new Distribution();
  /** The entries by event type and result. */
  readonly entries = new PairTally();
  readonly denials = new Tally(DENIAL_CLASSES);
  readonly lastHour = new LastHour();
  readonly leasesIssued = new Tally<'retrieve' | 'use'>(['retrieve', 'use']);
  /** Versions of credentials that were sealed. */
  valuesSealed = 0;

  committed(entries: readonly AuditEntry[], changes: readonly StoredChange[], now: number): void {
    for (const entry of entries) {
      const { event_type, result } = entry;
      this.entries.add(event_type, result);
      if (result === 'denied') {
        this.denials.add(denialClassOf(entry));
        this.lastHour.add('denials', now);
      } else if (result === 'allowed') {
        if (event_type === 'credential.retrieve') this.lastHour.add('retrievals', now);
        else if (event_type === 'credential.use') this.lastHour.add('uses', now);
      }
    }
    for (const change of changes) {
      if (change.kind === 'addLease') this.leasesIssued.add(change.lease.kind);
      else if (change.kind === 'addVersion') this.valuesSealed += 1;
    }
  }
}

// Sorts the denials of the log into a closed set of classes, for metrics: a reason itself may name a path.

export const DENIAL_CLASSES = [
  'no_policy',
  'no_action',
  'no_path',
  'admin_only',
  'login',
  'misuse',
  'limit',
  'other',
] as const;
export type DenialClass = (typeof DENIAL_CLASSES)[number];

const CLASS_OF_REASON: ReadonlyMap<string | null, DenialClass> = new Map<string | null, DenialClass>([
  [DENIAL_REASONS.no_policy, 'no_policy'],
  [DENIAL_REASONS.no_action, 'no_action'],
  [DENIAL_REASONS.no_path, 'no_path'],
  ['only the administrator may do this', 'admin_only'],
]);

/** The class of an entry whose result is `denied`. */
export function denialClassOf({ event_type, reason }: Pick<AuditEntry, 'event_type' | 'reason'>): DenialClass {
  if (event_type === 'auth.verify') return 'login';
  if (event_type === 'credential.misuse') return 'misuse';
  const known = CLASS_OF_REASON.get(reason);
  if (known !== undefined) return known;
  return reason?.includes("over the policy's limit of ") === true ? 'limit' : 'other';
}
