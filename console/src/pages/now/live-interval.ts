/** How often the page reads what happens. A hidden page reads nothing. */
import type { Query } from '@tanstack/react-query';
import { LeaseholdError } from '../../../../src/client/errors.ts';

const LIVE_INTERVAL_MS = 1000;
const FAILED_INTERVAL_MS = 5000;

/** A refused read would be recorded each time, and what was removed does not come back: neither is repeated. */
export function intervalOf(intervalMs: number): (query: Pick<Query, 'state'>) => number | false {
  return ({ state: { error } }) => {
    if (error === null) return intervalMs;
    const isFinal = error instanceof LeaseholdError && (error.status === 403 || error.status === 404);
    return isFinal ? false : Math.max(intervalMs, FAILED_INTERVAL_MS);
  };
}

export const liveInterval = intervalOf(LIVE_INTERVAL_MS);
