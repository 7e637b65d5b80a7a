/**
 * The vault's clock, in milliseconds since 1970. It never goes back or stops: when the wall clock is set back, it
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

/** The last millisecond of the year 9999. Later timestamps have more digits, so that the log would not sort. */
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
