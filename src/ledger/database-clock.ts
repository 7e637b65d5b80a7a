/**
 * The database's clock, as a node that shares it knows it: what it said last, and the time that has passed here since then. It
 * decides all ends. It never goes back: where the database's clock was set back, as by a standby that took over, this one goes on
 * by itself, so that no lease lasts longer for it.
 */
import type { Clock, TimeSource } from './clock.ts';
import { SYSTEM_TIME } from './clock.ts';

/** Two clocks may drift apart by so much without one of them having been set … */
const DRIFT = 0.001;
/** … and an answer may take so long on its way. */
const MAX_LATENCY_MS = 250;

export class DatabaseClock implements Clock {
  readonly #source: Pick<TimeSource, 'monotonic'>;
  /** What the database said, and when that was here. */
  #lastReading: number;
  #readAt: number;
  /** What was told last. */
  #lastReturned: number;

  /** Goes on from `notBefore` where the database's clock is behind it. */
  constructor(databaseTime: number, notBefore: number, source: Pick<TimeSource, 'monotonic'> = SYSTEM_TIME) {
    this.#source = source;
    this.#lastReading = Math.max(databaseTime, notBefore);
    this.#readAt = source.monotonic();
    this.#lastReturned = this.#lastReading;
  }

  now(): number {
    this.#lastReturned = Math.max(this.#lastReturned, this.#lastReading + this.#elapsed());
    return Math.floor(this.#lastReturned);
  }

  /** Takes over what the database says now, in milliseconds since 1970. */
  sync(databaseTime: number): void {
    const elapsed = this.#elapsed();
    const expected = this.#lastReading + elapsed;
    const isSetBack = databaseTime < expected - MAX_LATENCY_MS - elapsed * DRIFT;
    this.#lastReading = isSetBack ? expected : databaseTime;
    this.#readAt = this.#source.monotonic();
  }

  /** Goes on from there where that is later: what others have seen is past. */
  advance(to: number): void {
    if (to <= this.now()) return;
    this.#lastReading = to;
    this.#readAt = this.#source.monotonic();
  }

  #elapsed(): number {
    return Math.max(0, this.#source.monotonic() - this.#readAt);
  }
}
