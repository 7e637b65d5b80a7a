/**
 * The cache of everything that was read. The client retries on its own, so queries do not; it is emptied when the
 * session ends and when another person signs in, who then sees nothing of it.
 */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
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

/** Whose data the cache has; null if it has no person’s. */
let owner: string | null = null;
session.subscribe(() => {
  const state = session.read();
  const next = state.kind === 'signed-in' ? `${state.person.isAdministrator}:${state.person.name}` : null;
  if (owner !== null && owner !== next) queries.clear();
  owner = next;
});
