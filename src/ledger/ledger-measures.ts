/** The measures of the ledger: its batches, and the entries and changes that they committed. */

import { DENIAL_CLASSES } from '../core/denial-kinds.ts';
import { denialClassOf } from '../core/denials.ts';
import { Counter, Histogram, LabelledCounter, LastHour } from '../core/measures.ts';
import type { StoredChange } from '../store/stored-data.ts';
import type { AuditEntry } from '../vault/audit/audit-entry.ts';

export class LedgerMeasures {
  /** `empty`: nothing was written. */
  readonly batches = new Counter<'committed' | 'empty' | 'failed'>(['committed', 'empty', 'failed']);
  readonly batchSizes = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256]);
  readonly writeSeconds = new Histogram();
  /** The time from the write of a batch until it is durable. */
  readonly durableSeconds = new Histogram();
  readonly entries = new LabelledCounter();
  readonly denials = new Counter(DENIAL_CLASSES);
  readonly lastHour = new LastHour();
  readonly leasesIssued = new Counter<'retrieve' | 'use'>(['retrieve', 'use']);
  valuesEncrypted = 0;

  committed(entries: readonly AuditEntry[], changes: readonly StoredChange[], now: number): void {
    for (const { event_type, result, code } of entries) {
      this.entries.add(event_type, result);
      if (result === 'denied') {
        this.denials.add(denialClassOf(code));
        this.lastHour.add('denials', now);
      } else if (result === 'allowed') {
        if (event_type === 'credential.retrieve') this.lastHour.add('retrievals', now);
        else if (event_type === 'credential.use') this.lastHour.add('uses', now);
      }
    }
    for (const change of changes) {
      if (change.kind === 'addLease') this.leasesIssued.add(change.lease.kind);
      else if (change.kind === 'addVersion') this.valuesEncrypted += 1;
    }
  }
}
