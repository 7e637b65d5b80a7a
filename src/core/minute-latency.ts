/**
 * The durations of the last hour's requests, by minute: a histogram for each minute in a ring. Adding one costs less
 * than a microsecond.
 */

const MINUTE_MS = 60_000;
export const MINUTES = 60;
/** Bounds grow by a fifth, so that a quantile is at most a tenth off. */
const BOUNDS_PER_DOUBLING = 4;
const FIRST_BOUND_MS = 1 / 16;
/** Up to 65 seconds; the last bucket has what took longer. */
const BUCKETS = 20 * BOUNDS_PER_DOUBLING + 1;

export interface MinuteLatency {
  /** The beginning of the minute in milliseconds since 1970. */
  readonly at: number;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Minute {
  /** Minutes since 1970; −1 before the first use. */
  number: number;
  count: number;
  readonly buckets: Uint32Array;
}

export class MinuteRing {
  readonly #minutes: readonly Minute[] = Array.from({ length: MINUTES }, () => ({
    number: -1,
    count: 0,
    buckets: new Uint32Array(BUCKETS),
  }));

  /** `now`: milliseconds since 1970. */
  observe(durationMs: number, now: number): void {
    const number = Math.floor(now / MINUTE_MS);
    const minute = this.#minutes[number % MINUTES];
    if (minute === undefined) return;
    if (minute.number !== number) {
      minute.number = number;
      minute.count = 0;
      minute.buckets.fill(0);
    }
    const index = bucketOf(durationMs);
    minute.count += 1;
    minute.buckets[index] = (minute.buckets[index] ?? 0) + 1;
  }

  /** The minutes of the last hour that had requests, oldest first. */
  read(now: number): MinuteLatency[] {
    const newest = Math.floor(now / MINUTE_MS);
    return this.#minutes
      .filter(({ number, count }) => count > 0 && number <= newest && number > newest - MINUTES)
      .sort((a, b) => a.number - b.number)
      .map((minute) => ({
        at: minute.number * MINUTE_MS,
        count: minute.count,
        p50Ms: quantile(minute, 0.5),
        p99Ms: quantile(minute, 0.99),
      }));
  }
}

function bucketOf(durationMs: number): number {
  if (durationMs <= FIRST_BOUND_MS) return 0;
  const index = Math.ceil(Math.log2(durationMs / FIRST_BOUND_MS) * BOUNDS_PER_DOUBLING);
  return index < BUCKETS ? index : BUCKETS - 1;
}

/** The middle of the bucket in which the quantile is, in milliseconds with three digits. */
function quantile({ count, buckets }: Minute, share: number): number {
  const rank = Math.ceil(count * share);
  let seen = 0;
  const index = buckets.findIndex((inBucket) => {
    seen += inBucket;
    return seen >= rank;
  });
  const bound = FIRST_BOUND_MS * 2 ** ((index - 0.5) / BOUNDS_PER_DOUBLING);
  return Number((index === 0 ? FIRST_BOUND_MS / 2 : bound).toPrecision(3));
}
