/**
 * The MACs of the audit log's entries, each covering the one before, and of the head record.
 * SOURCE: docs/formats.md.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { canonicalEntry, type EntryWithoutMac, GENESIS_MAC } from '../core/audit.ts';
import { canonicalHead, type HeadFields } from '../core/head-record.ts';
import type { AuditKey, AuditKeys } from './audit-keys.ts';
import { timingSafeEqualText } from './encoding.ts';

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

/** Base64 of the MAC over the head record. */
export function headMac(auditKey: KeyObject, head: HeadFields): string {
  return createHmac('sha256', auditKey).update(canonicalHead(head)).digest('base64');
}

/**
 * Whether the vault wrote the head record, and under no key that was replaced before. WHY: who has a former audit key
 * could write a shorter log. `keys` must be read before the head record, or with it.
 */
export function isHeadInForce(
  keys: AuditKeys & { readonly auditKeys: readonly AuditKey[] },
  head: HeadFields & { readonly mac: string },
): boolean {
  const newestFrom = keys.auditKeys.at(-1)?.fromSeq ?? 1;
  return head.seq + 1 >= newestFrom && isHeadAuthentic(keys.auditAt(head.seq), head);
}

export function isHeadAuthentic(auditKey: KeyObject, head: HeadFields & { readonly mac: string }): boolean {
  return timingSafeEqualText(headMac(auditKey, head), head.mac);
}
