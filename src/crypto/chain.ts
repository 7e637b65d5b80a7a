/** The HMACs of the audit log: the link of each entry to the one before, and the head record's own. SOURCE: docs/formats.md. */
import { createHmac, type KeyObject } from 'node:crypto';
import { canonicalEntry, canonicalHead, type EntryWithoutMac, GENESIS_MAC } from '../core/audit.ts';
import { timingSafeEqualText } from './keys.ts';

/** A place in the chain: an entry's sequence number, MAC and time. */
export interface ChainPoint {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string | null;
}

/** Before the first entry. */
export const CHAIN_START: ChainPoint = { seq: 0, hmac: GENESIS_MAC, timestamp: null };

/** Base64 of HMAC-SHA256(K, previous link as 32 bytes ‖ canonical bytes). `previous` is base64 too. */
export function entryMac(auditKey: KeyObject, previous: string, entry: EntryWithoutMac): string {
  return createHmac('sha256', auditKey).update(previous, 'base64').update(canonicalEntry(entry)).digest('base64');
}

/** Base64 of the MAC over the head record's ordinal and link. */
export function headMac(auditKey: KeyObject, seq: number, hmac: string): string {
  return createHmac('sha256', auditKey).update(canonicalHead(seq, hmac)).digest('base64');
}

export function isHeadAuthentic(auditKey: KeyObject, head: { seq: number; hmac: string; mac: string }): boolean {
  return timingSafeEqualText(headMac(auditKey, head.seq, head.hmac), head.mac);
}
