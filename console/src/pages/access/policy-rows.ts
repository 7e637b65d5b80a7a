/** The policies of the table: all by pages, or those that have a text in their name, principal or resources. */
import { useQuery } from '@tanstack/react-query';
import type { Policy } from '../../../../src/client/types.ts';
import { type PagedRows, toRows, usePagedRows } from '../../components/paged-rows.ts';
import { client } from '../../session/console-client.ts';

const PAGE_ROWS = 1000;
/** The service does not filter policies, so a filter reads them. */
export const MAX_FILTERED = 10_000;

interface Filtered {
  readonly policies: readonly Policy[];
  /** Whether more exist than were read. */
  readonly isCut: boolean;
}

async function readAll(signal: AbortSignal): Promise<Filtered> {
  const policies: Policy[] = [];
  for (;;) {
    const { data } = await client.policies.list({ offset: policies.length, limit: PAGE_ROWS }, { signal });
    policies.push(...data);
    if (data.length < PAGE_ROWS) return { policies, isCut: false };
    if (policies.length >= MAX_FILTERED) return { policies, isCut: true };
  }
}

interface PolicyRows {
  readonly rows: PagedRows<Policy>;
  readonly isCut: boolean;
}

/** `text`: undefined for all. */
export function usePolicyRows(text: string | undefined): PolicyRows {
  const all = usePagedRows<Policy>({
    queryKey: ['policies', 'pages'],
    read: (page, signal) => client.policies.list(page, { signal }),
  });
  const { data, isPending, error, refetch } = useQuery({
    queryKey: ['policies', 'all'],
    queryFn: ({ signal }) => readAll(signal),
    enabled: text !== undefined,
  });
  if (text === undefined) return { rows: all, isCut: false };
  const wanted = text.toLowerCase();
  const found = data?.policies.filter(({ name, principal, resources }) =>
    [name, principal, ...resources].some((each) => each.toLowerCase().includes(wanted)),
  );
  const rows = { ...toRows(found ?? []), isPending, error, refetch: () => void refetch() };
  return { rows, isCut: data?.isCut === true };
}
