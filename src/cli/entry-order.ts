/** Entries in the order of the log: an honest service's numbers only rise, and what does not rise would never end. */
import { LeaseholdError } from '../client/errors.ts';
import type { AuditEntry } from '../client/types.ts';

/** Oldest first, from behind that number on. @throws LeaseholdError INVALID_RESPONSE */
export function assertIncreasing(entries: readonly AuditEntry[], behind = 0): void {
  let last = behind;
  for (const { seq } of entries) {
    if (seq <= last) throw new LeaseholdError('INVALID_RESPONSE', 'the entries of the log are not in their order');
    last = seq;
  }
}
