/**
 * MACs on the rows that decisions depend on. They detect an edit of the database when the row is read. The same key
 * computes the MACs that are stored instead of idempotency keys and requests, and the MACs of the rollback marker and
 * the keyset.
 */
import { createHmac, type KeyObject } from 'node:crypto';
import type { Resource } from '../core/resources.ts';
import { timingSafeEqualText } from './primitives.ts';

export type MacPurpose = 'approval-key' | 'idempotency' | 'request' | 'rollback-marker' | 'key-slot' | 'keyset';
export type MacFields = readonly (string | number | readonly string[])[];

/** Base64 of HMAC-SHA256 over the JSON array of the purpose and the fields in order. SOURCE: docs/formats.md. */
export function fieldsMac(rowKey: KeyObject, purpose: MacPurpose, fields: MacFields): string {
  return macOf(rowKey, [`leasehold-${purpose}-v1`, ...fields]);
}

/**
 * Base64 of HMAC-SHA256 over the JSON array of the resource and an object with the row's values by the name of the
 * column, in code-point order and without null. SOURCE: docs/formats.md.
 */
export function rowMac(rowKey: KeyObject, resource: Resource, values: Readonly<Record<string, unknown>>): string {
  return macOf(rowKey, [`leasehold-${resource}-v2`, values]);
}

/** `stored` has an unknown type: a damaged page can contain null in a column that is never null. */
export function isMac(stored: unknown, mac: string): boolean {
  return typeof stored === 'string' && timingSafeEqualText(mac, stored);
}

function macOf(rowKey: KeyObject, content: readonly unknown[]): string {
  return createHmac('sha256', rowKey).update(JSON.stringify(content)).digest('base64');
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

  /** The sum in base64. */
  toString(): string {
    return this.#mac('set', String(this.#members.size), Buffer.from(this.#sum).toString('base64')).toString('base64');
  }

  /** Adds a value that is not in the sum, and removes one that is. A name has one value at a time. */
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
