/**
 * A block of log entries in memory, as columns of numbers. WHY ids as bytes: the resources of leases and approvals have
 * a different id each, and would fill the dictionary.
 */
import { UUID } from '../core/names.ts';
import type { EntryColumns } from '../store/log-columns.ts';
import { type LogDictionary, OTHER_RESOURCE } from './log-dictionary.ts';

export const BLOCK_ENTRIES = 4096;
/** Resources with an id, by their beginnings. */
export const ID_PREFIXES = ['lease:', 'approval:'] as const;
const ID_BYTES = 16;
/** A resource with an id is this, the number of its prefix, and its position among the ids of the block. */
const FIRST_ID = 2 ** 31;

/** The number of the prefix; null for a resource of the dictionary. */
export const prefixOf = (resource: number): number | null =>
  resource < FIRST_ID ? null : Math.floor((resource - FIRST_ID) / BLOCK_ENTRIES);

/** The prefix and the id as bytes; null for a resource without an id. */
export function parseId(resource: string): { readonly prefix: number; readonly id: Buffer } | null {
  const prefix = ID_PREFIXES.findIndex((one) => resource.startsWith(one));
  const id = resource.slice(ID_PREFIXES[prefix]?.length);
  return prefix === -1 || !UUID.test(id) ? null : { prefix, id: Buffer.from(id.replaceAll('-', ''), 'hex') };
}

export class LogBlock {
  /** Sequence number of the first entry. */
  readonly first: number;
  /** Numbers of kinds; 0 for an entry that does not exist. */
  readonly kinds = new Uint32Array(BLOCK_ENTRIES);
  readonly resources = new Uint32Array(BLOCK_ENTRIES);
  /** Milliseconds since 1970; NaN for an entry whose timestamp was altered. */
  readonly times = new Float64Array(BLOCK_ENTRIES);
  /** Whether the texts of some resources are not in memory. */
  hasOtherResources = false;
  #ids = Buffer.alloc(0);
  #idCount = 0;

  constructor(number: number) {
    this.first = number * BLOCK_ENTRIES;
  }

  put({ seq, timestamp, kind, resource }: EntryColumns, dictionary: LogDictionary): void {
    const index = seq - this.first;
    const number = this.#putId(resource) ?? dictionary.takeResource(resource);
    this.kinds[index] = dictionary.takeKind(kind);
    this.resources[index] = number;
    this.times[index] = Date.parse(timestamp);
    if (number === OTHER_RESOURCE) this.hasOtherResources = true;
  }

  /** Null for a resource without an id. */
  #putId(resource: string): number | null {
    const parsed = parseId(resource);
    if (parsed === null) return null;
    const position = this.#idCount++;
    if (this.#ids.length < this.#idCount * ID_BYTES) {
      this.#ids = Buffer.concat([this.#ids], Math.max(16 * ID_BYTES, 2 * this.#ids.length));
    }
    this.#ids.set(parsed.id, position * ID_BYTES);
    return FIRST_ID + parsed.prefix * BLOCK_ENTRIES + position;
  }

  /** Whether a resource with an id has this one. WHY the last byte first: ids of a time begin with the same. */
  hasId(resource: number, id: Buffer): boolean {
    const offset = (resource % BLOCK_ENTRIES) * ID_BYTES;
    const isLast = this.#ids[offset + ID_BYTES - 1] === id[ID_BYTES - 1];
    return isLast && id.compare(this.#ids, offset, offset + ID_BYTES) === 0;
  }

  /** Of a resource with an id. */
  textOf(resource: number): string {
    const offset = (resource % BLOCK_ENTRIES) * ID_BYTES;
    const hex = this.#ids.toString('hex', offset, offset + ID_BYTES);
    const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    return `${ID_PREFIXES[prefixOf(resource) ?? 0]}${uuid}`;
  }

  /** Forgets the texts that no other block has. The block stays readable until numbers are reused. */
  release(dictionary: LogDictionary): void {
    for (const kind of this.kinds) if (kind !== 0) dictionary.releaseKind(kind);
    for (const resource of this.resources) {
      if (resource !== OTHER_RESOURCE && prefixOf(resource) === null) dictionary.releaseResource(resource);
    }
  }
}
