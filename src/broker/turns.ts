/**
 * Gives callers equal shares of the broker's processor: in each turn of the event loop a caller may take a number of
 * steps, or one piece of longer work, however many requests it has. SOURCE: SECURITY.md, P8.
 */

/** About a millisecond of matching. */
const STEPS_IN_A_TURN = 50_000;

/** The share of one caller. */
export interface TurnShare {
  /** Null if the caller may go on now; otherwise resolves when it may. */
  ready(): Promise<void> | null;
  /** Counts the steps of work that was done. */
  spend(steps: number): void;
}

/** Work that nothing waits for. */
export const UNLIMITED: TurnShare = { ready: () => null, spend: () => undefined };

export class Turns {
  /** The waiting work of each caller; none of the queues is empty. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** The steps of each caller in this turn. */
  readonly #spent = new Map<string, number>();
  #isScheduled = false;

  /** Resolves in a later turn, when the next piece of the caller's work may run: at most a few milliseconds. */
  next(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(caller);
    if (queue === undefined) this.#waiting.set(caller, [resolve]);
    else queue.push(resolve);
    this.#schedule();
    return promise;
  }

  shareOf(caller: string): TurnShare {
    return {
      ready: () => ((this.#spent.get(caller) ?? 0) < STEPS_IN_A_TURN ? null : this.next(caller)),
      spend: (steps) => {
        this.#spent.set(caller, (this.#spent.get(caller) ?? 0) + steps);
        this.#schedule();
      },
    };
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#spent.clear();
      for (const [caller, queue] of this.#waiting) {
        queue.shift()?.();
        // Others of the caller wait, also new ones, until the piece that runs now is done.
        this.#spent.set(caller, STEPS_IN_A_TURN);
        if (queue.length === 0) this.#waiting.delete(caller);
      }
      if (this.#waiting.size > 0 || this.#spent.size > 0) this.#schedule();
    });
  }
}
