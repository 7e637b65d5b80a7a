/**
 * How the threads of a verification share the log: each takes the next range that nobody has, in the order of the log, until
 * there is none. Five numbers in memory that all of them see, so that nobody has to be asked, least of all the service's thread.
 */

/** Entries of a range: some hundredths of a second of work, so that no thread waits long for the last one. */
export const RANGE_ENTRIES = 10_000;
/** Entries read and checked at a time: some milliseconds of work. Ranges are whole steps. */
export const STEP_ENTRIES = 1000;

/** How much longer than it worked a thread rests after a step while the service has callers. */
const THROTTLE_FACTOR = 6;

const [RANGES_TAKEN, STEPS_DONE, IS_OVER, IS_BUSY, IS_CLOSED] = [0, 1, 2, 3, 4] as const;
const NUMBERS = 5;

export interface Range {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export class WorkQueue {
  /** To be handed to a thread, which makes its own share of it. */
  readonly numbers: Int32Array<SharedArrayBuffer>;
  readonly #lastSeq: number;

  constructor(
    lastSeq: number,
    numbers = new Int32Array(new SharedArrayBuffer(NUMBERS * Int32Array.BYTES_PER_ELEMENT)),
  ) {
    this.#lastSeq = lastSeq;
    this.numbers = numbers;
  }

  /** The first range that nobody has taken, or null. INVARIANT: all before it have been taken, and will be checked. */
  take(): Range | null {
    if (this.isOver || Atomics.load(this.numbers, IS_CLOSED) === 1) return null;
    const fromSeq = Atomics.add(this.numbers, RANGES_TAKEN, 1) * RANGE_ENTRIES + 1;
    return fromSeq > this.#lastSeq ? null : { fromSeq, toSeq: Math.min(this.#lastSeq, fromSeq + RANGE_ENTRIES - 1) };
  }

  /** What is behind matters no more, since something before it is broken: nobody takes another range. */
  stopTaking(): void {
    // WHY not by the number of ranges: a row that somebody put in may have an ordinal that no counter can reach.
    Atomics.store(this.numbers, IS_CLOSED, 1);
  }

  /** Nobody wants to know any more: whoever checks a range leaves it. */
  cancel(): void {
    Atomics.store(this.numbers, IS_OVER, 1);
    this.setBusy(false);
  }

  get isOver(): boolean {
    return Atomics.load(this.numbers, IS_OVER) === 1;
  }

  stepDone(): void {
    Atomics.add(this.numbers, STEPS_DONE, 1);
  }

  /** Whether the service has callers, who go first. */
  setBusy(isBusy: boolean): void {
    Atomics.store(this.numbers, IS_BUSY, Number(isBusy));
    if (!isBusy) Atomics.notify(this.numbers, IS_BUSY);
  }

  /** After a step that took so long. WHY not priority alone: what a thread has in the caches and the locks it holds, it keeps. */
  throttle(stepMs: number): void {
    Atomics.wait(this.numbers, IS_BUSY, 1, stepMs * THROTTLE_FACTOR);
  }

  /** Entries checked so far, to a step. */
  get checked(): number {
    return Math.min(this.#lastSeq, Atomics.load(this.numbers, STEPS_DONE) * STEP_ENTRIES);
  }
}
