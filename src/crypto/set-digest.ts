/**
 * A keyed digest of a set of rows that is updated row by row: the XOR of a MAC of each member, under an outer MAC. The
 * inner MACs and their XOR are never stored, so that known ones cannot be combined; the outer MAC replaces the nonce of
 * MSet-XOR-Hash. SOURCE: Clarke, Devadas, van Dijk, Gassend, Suh: Incremental Multiset Hash Functions and Their
 * Application to Memory Integrity Checking, ASIACRYPT 2003; docs/formats.md.
 */
import { createHmac, type KeyObject } from 'node:crypto';

const MAC_BYTES = 32;

export class SetDigest {
  readonly #key: KeyObject;
  readonly #members = new Map<string, string>();
  readonly #sum = new Uint8Array(MAC_BYTES);

  constructor(key: KeyObject, members: Iterable<readonly [name: string, value: string]> = []) {
    this.#key = key;
    for (const [name, value] of members) this.put(name, value);
  }

  /** Adds the member, or replaces the value of the member with the name. */
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
