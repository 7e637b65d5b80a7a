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

/** A clock that begins at `notBefore` or the wall clock, whichever is later. */
export function startClock(notBefore: number, source: TimeSource = SYSTEM_TIME): Clock {
  let latest = Math.max(notBefore, source.wall());
  let monotonic = source.monotonic();
  return {
    now() {
      const elapsed = source.monotonic();
      latest = Math.max(source.wall(), latest + Math.max(0, elapsed - monotonic));
      monotonic = elapsed;
      return Math.floor(latest);
    },
  };
}
