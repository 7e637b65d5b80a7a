/** Counts strings by length, so that a lookup can skip lengths that no string has. */
export class LengthMultiset {
  readonly #counts = new Map<number, number>();

  has(length: number): boolean {
    return this.#counts.has(length);
  }

  lengths(): Iterable<number> {
    return this.#counts.keys();
  }

  add(length: number): void {
    this.#counts.set(length, (this.#counts.get(length) ?? 0) + 1);
  }

  remove(length: number): void {
    const count = (this.#counts.get(length) ?? 0) - 1;
    if (count > 0) this.#counts.set(length, count);
    else this.#counts.delete(length);
  }
}
