/** Every single-bit flip of every column of a log, checked by the service's verifier from the flipped entry on. */
import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { CHAIN_START, type ChainPoint } from '../../src/crypto/chain.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { ChainVerifier } from '../../src/vault/audit/verification/chain-verifier.ts';

/**
 * Flips each bit of each column of the entries whose index `isChosen`. Returns the number of flips. WHY from the
 * flipped entry on: the verifier reads the entries in order, and the ones before are unchanged.
 * @throws AssertionError for a flip that is not found at its entry
 */
export function flipEveryBit(
  entries: readonly AuditEntry[],
  audit: KeyObject,
  isChosen: (index: number) => boolean = () => true,
): number {
  let flips = 0;
  let before: ChainPoint = CHAIN_START;
  for (const [index, entry] of entries.entries()) {
    if (isChosen(index)) {
      for (const flipped of flipsOf(entry)) {
        const broken = new ChainVerifier({ auditAt: () => audit }, before).next(flipped);
        assert.equal(broken?.entry, entry.seq, `not found: ${JSON.stringify(flipped)}`);
        flips += 1;
      }
    }
    before = entry;
  }
  return flips;
}

function* flipsOf(entry: AuditEntry): Generator<AuditEntry> {
  for (const [column, value] of Object.entries(entry)) {
    if (typeof value === 'number') {
      // The bits of the integers that JavaScript holds exactly; larger ones are rejected when they are read.
      for (let bit = 0; bit < 53; bit++) yield { ...entry, [column]: Number(BigInt(value) ^ (1n << BigInt(bit))) };
    } else if (typeof value === 'string') {
      const bytes = Buffer.from(value);
      for (let bit = 0; bit < 8 * bytes.length; bit++) {
        const at = bit >> 3;
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit & 7));
        // SQLite returns it in this form: invalid UTF-8 becomes U+FFFD.
        yield { ...entry, [column]: bytes.toString() };
        bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit & 7));
      }
    }
  }
}
