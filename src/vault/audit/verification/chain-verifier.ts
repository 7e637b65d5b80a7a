/** Verifies the chain, entry by entry. `scripts/verify_audit.py` does the same without the server. */

import {
  type AuditKeys,
  CHAIN_START,
  type ChainPoint,
  endsAuditKey,
  entryMac,
  isHandOverAuthentic,
  isHeadAuthentic,
} from '../../../crypto/chain.ts';
import type { Head } from '../../../store/stored-data.ts';
import type { AuditEntry } from '../audit-entry.ts';

export interface ChainBreak {
  readonly entry: number;
  readonly timestamp: string | null;
  readonly reason: string;
}

/** Follows the chain from a given entry on: each MAC covers the previous one, so ranges can be checked separately. */
export class ChainVerifier {
  readonly #keys: AuditKeys;
  #point: ChainPoint;

  constructor(keys: AuditKeys, start: ChainPoint = CHAIN_START) {
    this.#keys = keys;
    this.#point = start;
  }

  get point(): ChainPoint {
    return this.#point;
  }

  /** Returns the break at this entry, or null. Entries must be given in the order of the audit log. */
  next(entry: AuditEntry): ChainBreak | null {
    const { seq, hmac, timestamp } = this.#point;
    const expected = seq + 1;
    const broken = (reason: string): ChainBreak => ({ entry: expected, timestamp: entry.timestamp, reason });
    if (entry.seq !== expected) return broken('the entry is missing');
    if (timestamp !== null && entry.timestamp < timestamp)
      return broken('its time is earlier than that of the previous entry');
    if (entryMac(this.#keys.auditAt(expected), hmac, entry) !== entry.hmac)
      return broken('its content or its MAC was altered');
    if (endsAuditKey(entry) && !isHandOverAuthentic(this.#keys.auditAt(expected + 1), hmac, entry)) {
      return broken('it does not authenticate the next audit key');
    }
    this.#point = entry;
    return null;
  }
}

/** The break for an entry with a sequence number below 1, which is forged: the server counts from 1. */
export const BEFORE_FIRST: ChainBreak = {
  entry: 0,
  timestamp: null,
  reason: 'the audit log has an entry before the first one',
};

/** Returns the one with the smaller sequence number. */
export function earlierBreak(a: ChainBreak | null, b: ChainBreak): ChainBreak {
  return a === null || b.entry < a.entry ? b : a;
}

/** Compares the end of the chain with the head record. `beyondHead` is the time of the entry after it, if any. */
export function verifyHead(
  keys: AuditKeys,
  end: ChainPoint,
  head: Head | null,
  beyondHead: string | null,
): ChainBreak | null {
  const atEnd = (reason: string): ChainBreak => ({ entry: end.seq + 1, timestamp: end.timestamp, reason });
  if (head === null) return atEnd('the head record is missing');
  if (!isHeadAuthentic(keys.auditAt(head.seq), head)) return atEnd('the head record is not authentic');
  if (head.seq > end.seq) return atEnd('the entry is missing: the end of the audit log was truncated');
  if (head.seq < end.seq) {
    return { entry: head.seq + 1, timestamp: beyondHead, reason: 'the head record does not cover the entry' };
  }
  if (head.hmac === end.hmac) return null;
  return { entry: end.seq, timestamp: end.timestamp, reason: 'the head record has another MAC' };
}
