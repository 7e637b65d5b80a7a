/** Batches that are written and wait for the disk; their results are delivered after the sync. */

/** More would move the backlog from the bounded queue to unsent responses. */
const MAX_BATCHES = 4;

export class PendingCommits {
  readonly #batches: Promise<void>[] = [];
  #count = 0;
  #last: Promise<void> = Promise.resolve();
  readonly #onDelivered: () => void;

  /** `onDelivered` is called in the iteration of the event loop after a batch's results were delivered. */
  constructor(onDelivered: () => void) {
    this.#onDelivered = onDelivered;
  }

  /** Whether no batch waits for the disk. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Resolves when the results of all batches so far are delivered. Never rejects. */
  get last(): Promise<void> {
    return this.#last;
  }

  /** Adds a batch; `delivered` must never reject. Resolves when another batch may be added. */
  async add(delivered: Promise<void>): Promise<void> {
    this.#count += 1;
    this.#last = delivered.then(() => {
      this.#count -= 1;
      // WHY later: callers that just got a result may submit again, and share a batch with the waiting operations.
      setImmediate(this.#onDelivered);
    });
    this.#batches.push(this.#last);
    if (this.#batches.length >= MAX_BATCHES) await this.#batches.shift();
  }
}
