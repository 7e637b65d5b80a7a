/**
 * Work that many may ask for and that is done once at a time. INVARIANT: whoever asks is answered by a round that began after
 * he asked, so that it saw all that was there then. Who comes while a round runs shares the next one: there are never more than
 * two, however many ask, and nobody has to be refused.
 */
export class SingleFlight<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  #running: Flight<T> | null = null;
  #next: Flight<T> | null = null;

  /** `work` is told by the signal when nobody waits for it any more; it has ended, with all that it started, when it settles. */
  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  /** Resolves to what a round of the work answers. @throws what the work throws, or the signal's reason where that comes first */
  run(signal: AbortSignal): Promise<T> {
    if (this.#running === null) {
      const round = new Flight<T>();
      const answer = round.join(signal);
      this.#begin(round);
      return answer;
    }
    if (this.#next === null || !this.#next.isWanted) this.#next = new Flight();
    return this.#next.join(signal);
  }

  #begin(round: Flight<T>): void {
    this.#running = round;
    void round.run(this.#work).then(() => {
      const next = this.#next;
      this.#running = null;
      this.#next = null;
      if (next?.isWanted === true) this.#begin(next);
    });
  }
}

class Flight<T> {
  readonly #result = Promise.withResolvers<T>();
  readonly #leaving = new AbortController();
  #waiting = 0;

  constructor() {
    // Everybody may have left before it fails.
    this.#result.promise.catch(() => undefined);
  }

  /** Whether somebody still waits for it. */
  get isWanted(): boolean {
    return !this.#leaving.signal.aborted;
  }

  async join(signal: AbortSignal): Promise<T> {
    this.#waiting += 1;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([this.#result.promise, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#leaving.abort();
    }
  }

  /** Never rejects. */
  async run(work: (signal: AbortSignal) => Promise<T>): Promise<void> {
    try {
      this.#result.resolve(await work(this.#leaving.signal));
    } catch (error) {
      this.#result.reject(error);
    }
  }
}
