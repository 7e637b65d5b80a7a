/**
 * MACs on the rows that decide: agents, policies, sessions, credentials and kept replies. An edit in the database is found when the row is
 * read. The same key makes of a caller's idempotency key and of the request that came with it what may be kept of them, and
 * authenticates the anchor of the log, which lies in a file.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { timingSafeEqualText } from './keys.ts';

export type RowFields = readonly (string | number | readonly string[])[];

/** What a MAC is over; each kind has a name of its own in front. */
type RowKind = 'agent' | 'policy' | 'session' | 'credential' | 'reply' | 'idempotency' | 'request' | 'anchor';

/** Base64 of HMAC-SHA256 over the JSON array of the kind and the row's fields in their order. SOURCE: docs/formats.md. */
export function rowMac(rowKey: KeyObject, kind: RowKind, fields: RowFields): string {
  return createHmac('sha256', rowKey)
    .update(JSON.stringify([`leasehold-${kind}-v1`, ...fields]))
    .digest('base64');
}

export function isRowAuthentic(rowKey: KeyObject, kind: RowKind, fields: RowFields, mac: string): boolean {
  return timingSafeEqualText(rowMac(rowKey, kind, fields), mac);
}
