/**
 * The vault's clock. It never goes back and never stands: it goes on with the monotonic clock where the wall clock was set
 * back, so that a jump extends no lease. Milliseconds since 1970.
 */
export interface Clock {
  now(): number;
}

/** Where the time comes from; a test gives its own. */
export interface TimeSource {
  wall(): number;
  monotonic(): number;
}

export const SYSTEM_TIME: TimeSource = { wall: () => Date.now(), monotonic: () => performance.now() };

/** The last millisecond of the year 9999. Timestamps beyond it have another form, in which the log would not sort. */
export const MAX_TIME = Date.UTC(10_000, 0, 1) - 1;

/** A clock that begins at `notBefore` or the wall clock, whichever is later. */
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
