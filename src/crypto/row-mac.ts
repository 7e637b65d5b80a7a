/**
 * MACs on the rows on which decisions depend: agents, policies, sessions, credentials and idempotency records. They
 * detect an edit of the database when the row is read. The key also computes the MACs stored in place of idempotency
 * keys and requests, and the MAC of the rollback marker.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { timingSafeEqualText } from './encoding.ts';

export type RowFields = readonly (string | number | readonly string[])[];

/** The kind of a row, which the MAC covers. */
export type RowKind =
  | 'agent'
  | 'operator'
  | 'policy'
  | 'session'
  | 'credential'
  | 'targets'
  | 'approval'
  | 'approval-key'
  | 'reply'
  | 'idempotency'
  | 'request'
  | 'rollback-marker'
  | 'key-slot'
  | 'keyset';

/** Base64 of HMAC-SHA256 over the JSON array of the kind and the row's fields in order. SOURCE: docs/formats.md. */
export function rowMac(rowKey: KeyObject, kind: RowKind, fields: RowFields): string {
  return createHmac('sha256', rowKey)
    .update(JSON.stringify([`leasehold-${kind}-v1`, ...fields]))
    .digest('base64');
}

/** `mac` is unknown: a damaged page can hold null in a column that is never null. */
export function isRowAuthentic(rowKey: KeyObject, kind: RowKind, fields: RowFields, mac: unknown): boolean {
  return typeof mac === 'string' && timingSafeEqualText(rowMac(rowKey, kind, fields), mac);
}
