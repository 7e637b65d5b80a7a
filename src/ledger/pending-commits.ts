/** Turns that are written, wait for the disk, and are answered after it. */

/** More would outrun a slow disk: what waits would be answers, and no queue would refuse. */
const MAX_TURNS = 4;

export class PendingCommits {
  readonly #turns: Promise<void>[] = [];
  #count = 0;
  #last: Promise<void> = Promise.resolve();
  readonly #onAnswered: () => void;

  /** `onAnswered` is called in a round of the loop after a turn was answered. */
  constructor(onAnswered: () => void) {
    this.#onAnswered = onAnswered;
  }

  /** Whether the disk has nothing to do. */
  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Resolves when all that was decided so far is on disk and answered. Never rejects. */
  get last(): Promise<void> {
    return this.#last;
  }

  /** `answered` never rejects. Resolves when there is room for another turn. */
  async add(answered: Promise<void>): Promise<void> {
    this.#count += 1;
    this.#last = answered.then(() => {
      this.#count -= 1;
      // WHY later: those who were answered may ask on, and share a turn with who waits.
      setImmediate(this.#onAnswered);
    });
    this.#turns.push(this.#last);
    if (this.#turns.length >= MAX_TURNS) await this.#turns.shift();
  }
}
