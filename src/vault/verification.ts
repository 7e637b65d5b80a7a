/**
 * Verification: reads the whole log, computes every link again, and holds the end against the head record.
 * SOURCE: interface 2.9; decisions, "Audit". `scripts/verify_audit.py` does the same without the service.
 */
import { type AuditEntry, FIRST_LINK } from '../core/audit.ts';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/adminread.ts';
import { isHeadAuthentic, linkEntry } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { Head } from '../store/port.ts';
import { readInSteps } from './auditlog.ts';
import type { Vault } from './vault.ts';

export type Verification =
  | {
      readonly isValid: true;
      readonly entries: number;
      readonly firstEntry: string | null;
      readonly lastEntry: string | null;
    }
  | {
      readonly isValid: false;
      readonly breakAtEntry: number;
      readonly breakAtTimestamp: string | null;
      readonly why: string;
    };

/** Entries checked at a time: some milliseconds of work. */
const STEP_ENTRIES = 1000;

export async function verifyLog(vault: Vault, context: Context): Promise<Verification> {
  await vault.ledger.submit(adminRead(context, 'audit.verify', '*', () => null));
  const { head, last } = await vault.store.readHead();
  const check = new ChainCheck(vault.keys, head);
  for await (const rows of readInSteps(vault, last?.seq ?? 0, STEP_ENTRIES)) {
    for (const entry of rows) {
      const broken = check.next(entry);
      if (broken !== null) return broken;
    }
  }
  return check.end();
}

/** Checks entries one by one, in the order of the log. */
export class ChainCheck {
  readonly #keys: Pick<VaultKeys, 'audit'>;
  readonly #head: Head | null;
  /** The time of the first entry beyond the head record. */
  #beyondHead: string | null = null;
  #seq = 0;
  #hmac = FIRST_LINK;
  #first: string | null = null;
  #last: string | null = null;

  constructor(keys: Pick<VaultKeys, 'audit'>, head: Head | null) {
    this.#keys = keys;
    this.#head = head;
  }

  /** The break that this entry shows, or null. */
  next(entry: AuditEntry): Verification | null {
    const expected = this.#seq + 1;
    if (entry.seq !== expected) return broken(expected, entry.timestamp, 'the entry is missing');
    if (this.#last !== null && entry.timestamp < this.#last) {
      return broken(expected, entry.timestamp, 'its time is before that of the entry before');
    }
    if (linkEntry(this.#keys.audit, this.#hmac, entry) !== entry.hmac) {
      return broken(expected, entry.timestamp, 'its content or its link was altered');
    }
    if (this.#seq === this.#head?.seq) this.#beyondHead = entry.timestamp;
    this.#seq = expected;
    this.#hmac = entry.hmac;
    this.#first ??= entry.timestamp;
    this.#last = entry.timestamp;
    return null;
  }

  /** Holds the end against the head record. */
  end(): Verification {
    const head = this.#head;
    const behind = this.#seq + 1;
    if (head === null) return broken(behind, this.#last, 'the head record is missing');
    if (!isHeadAuthentic(this.#keys.audit, head)) return broken(behind, this.#last, 'the head record is not authentic');
    if (head.seq > this.#seq) return broken(behind, this.#last, 'the entry is missing: the end of the log was cut off');
    if (head.seq < this.#seq) return broken(head.seq + 1, this.#beyondHead, 'the head record does not know the entry');
    if (head.hmac !== this.#hmac) {
      return broken(this.#seq, this.#last, 'the head record links to another entry');
    }
    return { isValid: true, entries: this.#seq, firstEntry: this.#first, lastEntry: this.#last };
  }
}

function broken(entry: number, timestamp: string | null, why: string): Verification {
  return { isValid: false, breakAtEntry: entry, breakAtTimestamp: timestamp, why };
}
