/** Timestamps of requests and replies: ISO 8601 in UTC. */

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;

/** Milliseconds since 1970; null for any value that is not a timestamp. */
export function readTimestamp(given: unknown): number | null {
  const at = typeof given === 'string' && TIMESTAMP.test(given) ? Date.parse(given) : Number.NaN;
  // WHY compared: February 30 is a day of March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(String(given).slice(0, 19)) ? at : null;
}

/** The range of ISO 8601 timestamps with four digits for the year. */
const LAST_TIME = Date.UTC(10_000, 0, 1) - 1;
let lastAt = Number.NaN;
let lastTimestamp = '';

/**
 * Caches the last timestamp, because the replies of one batch contain the same time. Lists show rows unchecked, so a
 * time that was altered outside can be out of range: the nearest one is shown.
 */
export function toTimestamp(at: number): string {
  if (at !== lastAt) {
    lastTimestamp = new Date(Math.min(Math.max(at, 0), LAST_TIME)).toISOString();
    lastAt = at;
  }
  return lastTimestamp;
}
