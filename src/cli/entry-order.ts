/** Checks that audit entries arrive in order. */
import { LeaseholdError } from '../client/errors.ts';
import type { AuditEntry } from '../client/types.ts';

/** Expects entries oldest first, all after sequence number `after`. @throws LeaseholdError INVALID_RESPONSE */
export function assertIncreasing(entries: readonly AuditEntry[], after = 0): void {
  let last = after;
  for (const { seq } of entries) {
    if (seq <= last) throw new LeaseholdError('INVALID_RESPONSE', 'the audit entries are not in order');
    last = seq;
  }
}
