/**
 * A map that can evict its oldest entry.
 * WHY not the first key of a Map: a deleted entry leaves a hole, and V8 skips all holes to find the first key. A full
 * cache has thousands of them.
 */
export class FifoCache<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>();
  /** Entries in insertion order. A deleted one stays until it is the oldest, or until most entries are deleted. */
  #order: Entry<K, V>[] = [];
  #oldest = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** A replaced entry becomes the newest. */
  put(key: K, value: V): void {
    this.delete(key);
    const entry: Entry<K, V> = { key, value, isDeleted: false };
    this.#entries.set(key, entry);
    this.#order.push(entry);
  }

  delete(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { value } = entry;
    entry.isDeleted = true;
    // Releases the value, which the list would otherwise keep alive.
    entry.value = undefined;
    this.#entries.delete(key);
    if (this.#order.length > 2 * this.#entries.size + MIN_COMPACTED_LENGTH) this.#compact();
    return value;
  }

  /** Removes the oldest entry and returns its value; undefined if the map is empty. */
  evictOldest(): V | undefined {
    for (;;) {
      const entry = this.#order[this.#oldest];
      if (entry === undefined) return undefined;
      this.#oldest += 1;
      if (!entry.isDeleted) return this.delete(entry.key);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#order = [];
    this.#oldest = 0;
  }

  #compact(): void {
    this.#order = this.#order.slice(this.#oldest).filter(({ isDeleted }) => !isDeleted);
    this.#oldest = 0;
  }
}

interface Entry<K, V> {
  readonly key: K;
  value: V | undefined;
  isDeleted: boolean;
}

/** Compacting a shorter list is not worth its cost. */
const MIN_COMPACTED_LENGTH = 64;
