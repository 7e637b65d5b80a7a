/**
 * The keys of the audit log. A rotation adds one: each authenticates the entries from its first one up to the next
 * key's. SOURCE: docs/formats.md, "The audit log".
 */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { decodeStrictBase64 } from './encoding.ts';

/** Finds the key under which an entry of the log, or a head record that names it, is authenticated. */
export interface AuditKeys {
  auditAt(seq: number): KeyObject;
}

export interface AuditKey {
  /** The first entry that the key authenticates. */
  readonly fromSeq: number;
  readonly key: KeyObject;
}

/** The last of the keys that begins at the entry or before it. An empty log is authenticated with the first key. */
export function auditKeyAt(keys: readonly AuditKey[], seq: number): KeyObject {
  const found = keys.findLast(({ fromSeq }) => fromSeq <= seq) ?? keys[0];
  if (found === undefined) throw new Error('the keyset has no audit key');
  return found.key;
}

/** Base64 of the current audit key. */
export function exportAuditKey(keys: { readonly audit: KeyObject }): string {
  return toBase64(keys.audit);
}

/**
 * All keys, for an auditor: base64 of the only key, or a line for each key with its first entry, a space and base64.
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
