/**
 * Single-flight execution of shared work. INVARIANT: a caller's result comes from a run that started after the call, so
 * that it includes everything up to then. Callers during a run share the next one, so at most two runs exist and no
 * call is rejected.
 */
export class SingleFlight<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  #running: Flight<T> | null = null;
  #next: Flight<T> | null = null;

  /**
   * The signal aborts `work` when no caller waits for it. `work` must have stopped everything it started when
   * it settles.
   */
  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  /**
   * Resolves to the result of a run.
   * @throws the work's error, or the signal's reason if it aborts first
   */
  run(signal: AbortSignal): Promise<T> {
    if (this.#running === null) {
      const flight = new Flight<T>();
      const result = flight.join(signal);
      this.#begin(flight);
      return result;
    }
    if (this.#next === null || !this.#next.isWanted) this.#next = new Flight();
    return this.#next.join(signal);
  }

  #begin(flight: Flight<T>): void {
    this.#running = flight;
    void flight.run(this.#work).then(() => {
      const next = this.#next;
      this.#running = null;
      this.#next = null;
      if (next?.isWanted === true) this.#begin(next);
    });
  }
}

class Flight<T> {
  readonly #result = Promise.withResolvers<T>();
  readonly #abandoned = new AbortController();
  #waiting = 0;

  constructor() {
    // Prevents an unhandled rejection if all callers have left before the work fails.
    this.#result.promise.catch(() => undefined);
  }

  get isWanted(): boolean {
    return !this.#abandoned.signal.aborted;
  }

  async join(signal: AbortSignal): Promise<T> {
    this.#waiting += 1;
    try {
      return await orAborted(this.#result.promise, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#abandoned.abort();
    }
  }

  /** Never rejects. */
  async run(work: (signal: AbortSignal) => Promise<T>): Promise<void> {
    try {
      this.#result.resolve(await work(this.#abandoned.signal));
    } catch (error) {
      this.#result.reject(error);
    }
  }
}

/** The signal of a caller that never leaves. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;

/** Waits for the promise. @throws its error, or the signal's reason if it aborts first */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
