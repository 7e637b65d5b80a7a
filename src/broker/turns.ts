/**
 * Gives callers equal shares of the broker's processor. In each turn of the event loop, a caller may use a number of
 * steps, or one piece of longer work, however many requests it has. SOURCE: SECURITY.md, P8.
 */

/** Steps of about a millisecond of matching. */
const STEPS_IN_A_TURN = 50_000;

export interface TurnShare {
  /** Null if the caller may continue now; otherwise resolves when it may. */
  ready(): Promise<void> | null;
  /** Resolves in a later turn, when one piece of long work may run: at most a few milliseconds. */
  next(): Promise<void>;
  spend(steps: number): void;
}

export const UNLIMITED: TurnShare = { ready: () => null, next: async () => undefined, spend: () => undefined };

export class Turns {
  /** The waiting work of each caller; none of the queues is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #spent = new Map<string, number>();
  #isScheduled = false;

  shareOf(caller: string): TurnShare {
    const next = (): Promise<void> => this.#next(caller);
    return {
      next,
      ready: () => ((this.#spent.get(caller) ?? 0) < STEPS_IN_A_TURN ? null : next()),
      spend: (steps) => {
        this.#spent.set(caller, (this.#spent.get(caller) ?? 0) + steps);
        this.#schedule();
      },
    };
  }

  #next(caller: string): Promise<void> {
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
      this.#spent.clear();
      for (const [caller, queue] of this.#waiting) {
        queue.shift()?.();
        // The caller's other work, including new work, waits until the piece that runs now is done.
        this.#spent.set(caller, STEPS_IN_A_TURN);
        if (queue.length === 0) this.#waiting.delete(caller);
      }
      if (this.#waiting.size > 0 || this.#spent.size > 0) this.#schedule();
    });
  }
}
