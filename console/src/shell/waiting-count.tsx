/** The number of pending approvals, in the navigation and in the title of the window. */
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { setWaitingCount } from '../components/page-heading.tsx';
import { client } from '../session/console-client.ts';

const INTERVAL_MS = 5000;
export const WAITING_COUNT_KEY = ['approvals', 'waiting-count'] as const;

export function WaitingCount() {
  const { data: count = 0 } = useQuery({
    queryKey: WAITING_COUNT_KEY,
    queryFn: async ({ signal }) =>
      (await client.approvals.list({ status: 'pending', limit: 1 }, { signal })).meta.total,
    refetchInterval: INTERVAL_MS,
    // For a window in the background, the operator sees only the title.
    refetchIntervalInBackground: true,
  });
  useEffect(() => setWaitingCount(count), [count]);
  useEffect(() => () => setWaitingCount(0), []);
  if (count === 0) return null;
  return (
    <span className="waiting-count">
      {count.toLocaleString('en')} <span className="visually-hidden">pending</span>
    </span>
  );
}
