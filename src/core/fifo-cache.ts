/**
 * A map that knows what came first, so that a cache can let it go.
 * WHY not the first key of a Map: what was deleted leaves a hole, and V8 walks over all holes to find the first key, thousands of
 * them in a cache that is full.
 */
export class FifoCache<K, V> {
  readonly #entries = new Map<K, Entry<K, V>>();
  /** In the order of their coming; what is gone stays until it is the oldest, or most are gone. */
  #order: Entry<K, V>[] = [];
  #oldest = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** What is replaced loses its place, and comes last. */
  put(key: K, value: V): void {
    this.delete(key);
    const entry: Entry<K, V> = { key, value, isGone: false };
    this.#entries.set(key, entry);
    this.#order.push(entry);
  }

  delete(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { value } = entry;
    entry.isGone = true;
    // What is gone is not kept by the list.
    entry.value = undefined;
    this.#entries.delete(key);
    if (this.#order.length > 2 * this.#entries.size + MIN_ORDER) this.#tidy();
    return value;
  }

  /** Lets the oldest go, and tells what it was; undefined where nothing is left. */
  evictOldest(): V | undefined {
    for (;;) {
      const entry = this.#order[this.#oldest];
      if (entry === undefined) return undefined;
      this.#oldest += 1;
      if (!entry.isGone) return this.delete(entry.key);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#order = [];
    this.#oldest = 0;
  }

  #tidy(): void {
    this.#order = this.#order.slice(this.#oldest).filter(({ isGone }) => !isGone);
    this.#oldest = 0;
  }
}

interface Entry<K, V> {
  readonly key: K;
  value: V | undefined;
  isGone: boolean;
}

/** A shorter list is not worth tidying. */
const MIN_ORDER = 64;
