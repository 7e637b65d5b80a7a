/**
 * Counts of the leases, sessions and requests of an agent, or of all agents, which a panic or a deregistration ends.
 */
import { useQuery } from '@tanstack/react-query';
import type { Held } from '../../../../src/client/types.ts';
import { client } from '../../session/console-client.ts';
import { intervalOf } from '../../session/queries.ts';

/** WHY not more often: the server reads all sessions to count those of one agent. */
const INTERVAL_MS = 30_000;

/** A count is undefined while it is unknown. */
export function useHeld(agent: string | undefined): Partial<Held> {
  const { data } = useQuery({
    queryKey: ['held', agent ?? null],
    queryFn: ({ signal }) => client.exposure.held(agent === undefined ? {} : { agent }, { signal }),
    refetchInterval: intervalOf(INTERVAL_MS),
    staleTime: 0,
  });
  return data ?? {};
}

/** How many credentials the agent has seen or used; undefined for all agents. */
export function useExposed(agent: string | undefined): number | undefined {
  const { data } = useQuery({
    queryKey: ['exposure', 'count', agent ?? null],
    queryFn: async ({ signal }) =>
      (await client.exposure.list({ agent: agent ?? '', limit: 1 }, { signal })).meta.total,
    enabled: agent !== undefined,
  });
  return data;
}
