/**
 * MACs on the rows on which decisions depend: agents, policies, sessions, credentials and idempotency records. They
 * detect an edit of the database when the row is read. The key also computes the MACs stored in place of idempotency
 * keys and requests, and the MAC of the rollback marker.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import { timingSafeEqualText } from './primitives.ts';

export type RowFields = readonly (string | number | readonly string[])[];

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

// A keyed digest of a set of rows that is updated row by row: the XOR of a MAC of each member, under an outer MAC. The
// inner MACs and their XOR are never stored, so that known ones cannot be combined; the outer MAC replaces the nonce of
// MSet-XOR-Hash. SOURCE: Clarke, Devadas, van Dijk, Gassend, Suh: Incremental Multiset Hash Functions and Their
// Application to Memory Integrity Checking, ASIACRYPT 2003; docs/formats.md.

const MAC_BYTES = 32;

export class SetDigest {
  readonly #key: KeyObject;
  readonly #members = new Map<string, string>();
  readonly #sum = new Uint8Array(MAC_BYTES);

  constructor(key: KeyObject, members: Iterable<readonly [name: string, value: string]> = []) {
    this.#key = key;
    for (const [name, value] of members) this.put(name, value);
  }

  put(name: string, value: string): void {
    this.delete(name);
    this.#members.set(name, value);
    this.#toggle(name, value);
  }

  delete(name: string): void {
    const value = this.#members.get(name);
    if (value === undefined) return;
    this.#members.delete(name);
    this.#toggle(name, value);
  }

  /** Base64. */
  toString(): string {
    return this.#mac('set', String(this.#members.size), Buffer.from(this.#sum).toString('base64')).toString('base64');
  }

  /** Adds what is not in the sum, and removes what is: a name has one value at a time. */
  #toggle(name: string, value: string): void {
    for (const [index, byte] of this.#mac('member', name, value).entries()) {
      this.#sum[index] = (this.#sum[index] ?? 0) ^ byte;
    }
  }

  #mac(...fields: readonly [kind: 'set' | 'member', ...string[]]): Buffer {
    const [kind, ...others] = fields;
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([`leasehold-control-${kind}-v1`, ...others]))
      .digest();
  }
}
