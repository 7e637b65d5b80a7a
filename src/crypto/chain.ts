/**
 * The MACs of the audit log's entries, each covering the one before, and of the head record.
 * SOURCE: docs/formats.md.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { canonicalEntry, canonicalHead, type EntryWithoutMac, GENESIS_MAC } from '../core/audit.ts';
import { timingSafeEqualText } from './keys.ts';

/** A position in the chain: an entry's sequence number, MAC and time. */
export interface ChainPoint {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string | null;
}

/** The position before the first entry. */
export const CHAIN_START: ChainPoint = { seq: 0, hmac: GENESIS_MAC, timestamp: null };

/** Base64 of HMAC-SHA256(K, previous MAC as 32 bytes ‖ canonical bytes). `previous` is base64 too. */
export function entryMac(auditKey: KeyObject, previous: string, entry: EntryWithoutMac): string {
  return createHmac('sha256', auditKey).update(previous, 'base64').update(canonicalEntry(entry)).digest('base64');
}

/** Base64 of the MAC over the head record's sequence number and entry MAC. */
export function headMac(auditKey: KeyObject, seq: number, hmac: string): string {
  return createHmac('sha256', auditKey).update(canonicalHead(seq, hmac)).digest('base64');
}

export function isHeadAuthentic(auditKey: KeyObject, head: { seq: number; hmac: string; mac: string }): boolean {
  return timingSafeEqualText(headMac(auditKey, head.seq, head.hmac), head.mac);
}
