/**
 * The cache of all data that was read. The client retries by itself, so queries do not. The cache is emptied when the
 * session ends and when another operator signs in, who then sees none of it.
 */
import { MutationCache, type Query, QueryCache, QueryClient } from '@tanstack/react-query';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { noticeError, session } from './console-client.ts';

const STALE_MS = 5_000;
/** Rows of pages that are out of sight are kept this long. */
const UNUSED_MS = 60_000;

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: noticeError }),
  mutationCache: new MutationCache({ onError: noticeError }),
  defaultOptions: {
    queries: { retry: false, staleTime: STALE_MS, gcTime: UNUSED_MS, networkMode: 'always' },
    mutations: { retry: false, networkMode: 'always' },
  },
});

/** The operator whose data is cached; null if there is none. */
let owner: string | null = null;
session.subscribe(() => {
  const state = session.read();
  const next = state.kind === 'signed-in' ? `${state.identity.isAdministrator}:${state.identity.name}` : null;
  if (owner !== null && owner !== next) queries.clear();
  owner = next;
});

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
