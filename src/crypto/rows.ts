/** MACs on the rows that decide: agents, policies and sessions. An edit in the database is found when the row is read. */
import { createHmac, type KeyObject } from 'node:crypto';
import { isSameText } from './keys.ts';

export type RowFields = readonly (string | number | readonly string[])[];

/** Base64 of HMAC-SHA256 over the JSON array of the kind and the row's fields in their order. SOURCE: docs/formats.md. */
export function rowMac(rowKey: KeyObject, kind: 'agent' | 'policy' | 'session', fields: RowFields): string {
  return createHmac('sha256', rowKey)
    .update(JSON.stringify([`leasehold-${kind}-v1`, ...fields]))
    .digest('base64');
}

export function isRowAuthentic(
  rowKey: KeyObject,
  kind: 'agent' | 'policy' | 'session',
  fields: RowFields,
  mac: string,
): boolean {
  return isSameText(rowMac(rowKey, kind, fields), mac);
}
