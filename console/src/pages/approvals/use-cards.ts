/** Reads the requests of groups, and combines those that are answered together into cards. */
import { type UseQueryResult, useQueries } from '@tanstack/react-query';
import { isReadable } from '../../../../src/client/approval-groups.ts';
import type { Approval, ListedApproval } from '../../../../src/client/types.ts';
import { client, useRole } from '../../session/console-client.ts';

interface CardRequest {
  readonly listed: ListedApproval;
  readonly read: Pick<UseQueryResult<Approval>, 'data' | 'error' | 'refetch'>;
}

export type CardRequests = readonly [CardRequest, ...CardRequest[]];
type Group = readonly [ListedApproval, ...ListedApproval[]];

/** WHY separate cards: an answer to a group applies only to requests that the operator saw. */
export function useCards(groups: readonly Group[]): readonly CardRequests[] {
  const mayRead = useRole('approver');
  const read = useQueries({
    queries: groups.flat().map(({ approval_id: id }) => ({
      queryKey: ['approval', id],
      queryFn: ({ signal }: { signal: AbortSignal }) => client.approvals.read(id, { signal }),
      enabled: mayRead,
      // The request itself does not change. The list contains the parts that do.
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  const results = read.values();
  return groups.flatMap((group) => {
    const together: CardRequest[] = [];
    const apart: CardRequests[] = [];
    for (const listed of group) {
      const { value } = results.next();
      if (value === undefined) continue;
      const { data, error } = value;
      const isUnreadable = error !== null || (data !== undefined && !isReadable(data));
      if (isUnreadable) apart.push([{ listed, read: value }]);
      else together.push({ listed, read: value });
    }
    const [first, ...others] = together;
    return first === undefined ? apart : [[first, ...others] as const, ...apart];
  });
}
