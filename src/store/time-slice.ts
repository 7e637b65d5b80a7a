/** One step through many rows: reads chunk after chunk until its time is up, so that steps cost about the same. */
import type { Procedure } from './statement.ts';

/** Less than a batch takes. */
const STEP_MS = 1;

/**
 * Visits at least one chunk, and more until there is enough or the time is up. Returns the cursor of the next step;
 * null at the end.
 */
export function* scanUntilDeadline<Cursor>(
  start: Cursor,
  visit: (from: Cursor) => Procedure<Cursor | null>,
  isEnough: () => boolean = () => false,
): Procedure<Cursor | null> {
  const endsAt = performance.now() + STEP_MS;
  let cursor: Cursor | null = start;
  do cursor = yield* visit(cursor);
  while (cursor !== null && !isEnough() && performance.now() < endsAt);
  return cursor;
}
