/** How often the page reads new activity. A hidden page reads nothing. */
import type { Query } from '@tanstack/react-query';
import { LeaseholdError } from '../../../../src/client/errors.ts';

const LIVE_INTERVAL_MS = 1000;
const FAILED_INTERVAL_MS = 5000;

/** Stops after a denied read, which would be recorded each time, and for a removed resource, which does not return. */
export function intervalOf(intervalMs: number): (query: Pick<Query, 'state'>) => number | false {
  return ({ state: { error } }) => {
    if (error === null) return intervalMs;
    const isFinal = error instanceof LeaseholdError && (error.status === 403 || error.status === 404);
    return isFinal ? false : Math.max(intervalMs, FAILED_INTERVAL_MS);
  };
}

export const liveInterval = intervalOf(LIVE_INTERVAL_MS);
