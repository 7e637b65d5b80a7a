/**
 * One step through many rows: window after window until its time is up. So a step costs the same however many rows
 * there are, and little more on a slow disk.
 */

/** Less than a batch takes. */
const STEP_MS = 1;
/** Rows read between two checks of the clock. */
export const WINDOW_ROWS = 256;

/**
 * Looks at one window at least, from where the last one ended, until there is enough or no time left. Returns where the
 * next step goes on, null at the end.
 */
export function scanUntilDeadline<Place>(
  start: Place,
  look: (from: Place) => Place | null,
  isEnough: () => boolean,
): Place | null {
  const endsAt = performance.now() + STEP_MS;
  let place: Place | null = start;
  do place = look(place);
  while (place !== null && !isEnough() && performance.now() < endsAt);
  return place;
}
