/**
 * Gives callers equal shares of the broker's processor: in each turn of the event loop one piece of work of each caller
 * runs, however many requests it has. SOURCE: SECURITY.md, P8.
 */
export class Turns {
  /** The waiting work of each caller; none of the queues is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isScheduled = false;

  /** Resolves when the caller's next piece of work may run. A piece takes at most a few milliseconds. */
  next(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(caller);
    if (queue === undefined) this.#waiting.set(caller, [resolve]);
    else queue.push(resolve);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      for (const [caller, queue] of this.#waiting) {
        queue.shift()?.();
        if (queue.length === 0) this.#waiting.delete(caller);
      }
      if (this.#waiting.size > 0) this.#schedule();
    });
  }
}
