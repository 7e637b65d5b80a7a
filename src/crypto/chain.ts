/**
 * The audit log's MACs: its keys, its chain of entries and its head record. SOURCE: docs/formats.md, "The audit log".
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import {
  canonicalEntry,
  canonicalHead,
  type EntryWithoutMac,
  GENESIS_MAC,
  type HeadFields,
} from '../vault/audit/audit-entry.ts';
import { decodeStrictBase64, timingSafeEqualText } from './primitives.ts';

/** Finds the key that authenticates an entry of the audit log, or a head record that names it. */
export interface AuditKeys {
  auditAt(seq: number): KeyObject;
}

export interface AuditKey {
  /** The first entry that the key authenticates. */
  readonly fromSeq: number;
  readonly key: KeyObject;
}

/** The last key that begins at the entry or before it. An empty log is authenticated with the first key. */
export function auditKeyAt(keys: readonly AuditKey[], seq: number): KeyObject {
  const found = keys.findLast(({ fromSeq }) => fromSeq <= seq) ?? keys[0];
  if (found === undefined) throw new Error('the keyset has no audit key');
  return found.key;
}

/**
 * All keys, for an auditor: base64 of the only key; or one line for each key, with its first entry, a space and base64.
 */
export function exportAuditKeys({ auditKeys }: { readonly auditKeys: readonly AuditKey[] }): string {
  const [only, ...others] = auditKeys;
  if (only?.fromSeq === 1 && others.length === 0) return toBase64(only.key);
  return auditKeys.map(({ fromSeq, key }) => `${fromSeq} ${toBase64(key)}`).join('\n');
}

/** The inverse of `exportAuditKeys`; null for any other text. */
export function importAuditKeys(text: string): readonly AuditKey[] | null {
  const keys = text.split('\n').map((line) => {
    const [, fromSeq = '1', base64 = ''] = /^(?:([1-9]\d{0,15}) )?([A-Za-z0-9+/]{43}=)$/.exec(line) ?? [];
    const bytes = decodeStrictBase64(base64);
    return bytes?.length === 32 ? { fromSeq: Number(fromSeq), key: createSecretKey(bytes) } : null;
  });
  return keys.every((key) => key !== null) ? keys : null;
}

function toBase64(key: KeyObject): string {
  return key.export().toString('base64');
}

/** A position in the chain: an entry's sequence number, MAC and time. */
export interface ChainPoint {
  readonly seq: number;
  readonly hmac: string;
  readonly timestamp: string | null;
}

export const CHAIN_START: ChainPoint = { seq: 0, hmac: GENESIS_MAC, timestamp: null };

/** Base64 of HMAC-SHA256(K, previous MAC as 32 bytes ‖ canonical bytes). `previous` is also base64. */
export function entryMac(auditKey: KeyObject, previous: string, entry: EntryWithoutMac): string {
  return createHmac('sha256', auditKey).update(previous, 'base64').update(canonicalEntry(entry)).digest('base64');
}

export function headMac(auditKey: KeyObject, head: HeadFields): string {
  return createHmac('sha256', auditKey).update(canonicalHead(head)).digest('base64');
}

/**
 * Whether the vault wrote the head record under a key that was not replaced before. WHY: the holder of a previous audit
 * key could write a shorter log. `keys` must be read before the head record, or with it.
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

// The entry with which an audit key ends. Its reason contains the MAC of the same entry under the next key, so that the
// holder of either key knows that the audit log continues under the other one. SOURCE: docs/formats.md, "The audit
// log".

const PREFIX = 'next audit key: ';

/** Whether the next entry is authenticated with the next key. */
export function endsAuditKey({ event_type, result }: EntryWithoutMac): boolean {
  return event_type === 'key.rotate_audit' && result === 'allowed';
}

export function handOver(nextKey: KeyObject, previous: string, entry: EntryWithoutMac): EntryWithoutMac {
  return { ...entry, reason: PREFIX + entryMac(nextKey, previous, { ...entry, reason: null }) };
}

export function isHandOverAuthentic(nextKey: KeyObject, previous: string, entry: EntryWithoutMac): boolean {
  return timingSafeEqualText(handOver(nextKey, previous, entry).reason ?? '', entry.reason ?? '');
}
