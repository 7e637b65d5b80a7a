/**
 * The vault's clock, in milliseconds since 1970. It never goes back or stops: when the wall clock is moved back, it
 * advances with the monotonic clock, so that no lease lasts longer.
 */

export interface Clock {
  now(): number;
}

/** The source of the time; tests replace it. */
export interface TimeSource {
  wall(): number;
  monotonic(): number;
}

export const SYSTEM_TIME: TimeSource = { wall: () => Date.now(), monotonic: () => performance.now() };

/** The last millisecond of the year 9999. Later timestamps have more digits, so that the audit log would not sort. */
export const MAX_TIME = Date.UTC(10_000, 0, 1) - 1;

/** Returns a clock that starts at `notBefore` or the wall clock, whichever is later. */
export function startClock(notBefore: number, source: TimeSource = SYSTEM_TIME): Clock {
  let latest = Math.max(notBefore, source.wall());
  let monotonic = source.monotonic();
  return {
    now() {
      const elapsed = source.monotonic();
      const wall = source.wall();
      latest = Math.max(wall > MAX_TIME ? 0 : wall, latest + Math.max(0, elapsed - monotonic));
      monotonic = elapsed;
      return Math.floor(latest);
    },
  };
}

// The clock of nodes that share a database: the database's time at the last reading, plus the monotonic time since
// then. It decides when leases and sessions end. It never goes back: if the database's clock is moved back, for example
// by a failover, it advances with the monotonic clock, so that no lease lasts longer.

/** The relative drift between two clocks that is not taken for a clock that was moved back. */
const MAX_DRIFT = 0.001;
/** The network latency of a reading that is not taken for a clock that was moved back. */
const MAX_LATENCY_MS = 250;

export class DatabaseClock implements Clock {
  readonly #source: Pick<TimeSource, 'monotonic'>;
  /** The database's time at the last reading, and the monotonic time of that reading. */
  #lastReading: number;
  #readAt: number;
  #lastReturned: number;

  /** Starts at `notBefore` if the database's clock is behind it. */
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

  /** Records a reading of the database's clock, in milliseconds since 1970. */
  sync(databaseTime: number): void {
    const elapsed = this.#elapsed();
    const expected = this.#lastReading + elapsed;
    const isSetBack = databaseTime < expected - MAX_LATENCY_MS - elapsed * MAX_DRIFT;
    this.#lastReading = isSetBack ? expected : databaseTime;
    this.#readAt = this.#source.monotonic();
  }

  /** Advances the clock to a time that another node has already seen. */
  advance(to: number): void {
    if (to <= this.now()) return;
    this.#lastReading = to;
    this.#readAt = this.#source.monotonic();
  }

  #elapsed(): number {
    return Math.max(0, this.#source.monotonic() - this.#readAt);
  }
}
