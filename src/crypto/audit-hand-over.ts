/**
 * The entry with which an audit key ends. Its reason holds the MAC of the same entry under the next key, so that the
 * holder of either key knows that the log continues under the other one. SOURCE: docs/formats.md, "The audit log".
 */
import type { KeyObject } from 'node:crypto';
import type { EntryWithoutMac } from '../core/audit.ts';
import { entryMac } from './chain.ts';
import { timingSafeEqualText } from './encoding.ts';

const PREFIX = 'next audit key: ';

/** Whether the next entry is authenticated with the next key. */
export function endsAuditKey({ event_type, result }: EntryWithoutMac): boolean {
  return event_type === 'key.rotate_audit' && result === 'allowed';
}

/** Returns the entry with its reason. `previous` is the MAC of the entry before. */
export function handOver(nextKey: KeyObject, previous: string, entry: EntryWithoutMac): EntryWithoutMac {
  return { ...entry, reason: PREFIX + entryMac(nextKey, previous, { ...entry, reason: null }) };
}

export function isHandOverAuthentic(nextKey: KeyObject, previous: string, entry: EntryWithoutMac): boolean {
  return timingSafeEqualText(handOver(nextKey, previous, entry).reason ?? '', entry.reason ?? '');
}
