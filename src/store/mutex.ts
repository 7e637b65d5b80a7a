/** One holder at a time, in the order of the calls. */
export class Mutex {
  #released: Promise<void> = Promise.resolve();

  /** Resolves to the function that releases it; call that exactly when the work has ended. */
  async acquire(): Promise<() => void> {
    const before = this.#released;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#released = promise;
    await before;
    return resolve;
  }

  /** Resolves when every holder so far has released it. */
  idle(): Promise<void> {
    return this.#released;
  }
}
