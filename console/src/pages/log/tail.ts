/**
 * The entries that were added since the page was opened. Each read covers only the entries after the newest known one,
 * so that it stays short for a log of any length and for a filter without matches.
 */
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import type { AuditEntry, AuditFilter } from '../../../../src/client/types.ts';
import type { PagedRows } from '../../components/paged-rows.ts';
import { client } from '../../session/console-client.ts';

const INTERVAL_MS = 1000;
const MAX_PAGE_ROWS = 1000;
/** Limit of the kept entries. Beyond it, the operator is asked to start again. */
const MAX_ROWS = 5000;

export interface Tail {
  /** The new entries, newest first. */
  readonly rows: readonly AuditEntry[];
  /** Whether entries were skipped because too many were added. */
  readonly isFull: boolean;
  readonly error: unknown;
}

interface Read {
  readonly after: number;
  readonly rows: readonly AuditEntry[];
}

async function readNewest(signal: AbortSignal): Promise<number> {
  return (await client.audit.list({ limit: 1 }, { signal })).data[0]?.seq ?? 0;
}

async function readNext(filter: AuditFilter, { after, rows }: Read, signal: AbortSignal): Promise<Read> {
  const newest = await readNewest(signal);
  if (newest <= after || rows.length >= MAX_ROWS) return { after, rows };
  const range = { after, before: newest + 1, order: 'asc', limit: MAX_PAGE_ROWS } as const;
  const { data } = await client.audit.list({ ...filter, ...range }, { signal });
  const last = data.length === MAX_PAGE_ROWS ? data.at(-1)?.seq : undefined;
  return { after: last ?? newest, rows: [...data.toReversed(), ...rows] };
}

/** Begins after `from`, the newest entry of the pages; null while it is unknown. */
export function useTail(filter: AuditFilter, from: number | null, isOn: boolean): Tail {
  const state = useRef<{ readonly key: string; read: Read } | null>(null);
  const key = JSON.stringify([filter, from]);
  if (from !== null && state.current?.key !== key) state.current = { key, read: { after: from, rows: [] } };
  const { data, error } = useQuery({
    queryKey: ['audit-tail', filter, from],
    queryFn: async ({ signal }) => {
      const own = state.current;
      if (own === null) return null;
      own.read = await readNext(filter, own.read, signal);
      return own.read;
    },
    enabled: isOn && from !== null,
    refetchInterval: INTERVAL_MS,
    structuralSharing: false,
  });
  const rows = data?.rows ?? [];
  return { rows, isFull: rows.length >= MAX_ROWS, error };
}

/** The rows of the tail, and the pages after them. */
export function useJoined(tail: readonly AuditEntry[], pages: PagedRows<AuditEntry>): PagedRows<AuditEntry> {
  const { show } = pages;
  const count = tail.length;
  const showBoth = useMemo(
    () => (first: number, last: number) => show(Math.max(0, first - count), Math.max(0, last - count)),
    [show, count],
  );
  return {
    ...pages,
    total: count + pages.total,
    rowAt: (index) => (index < count ? tail[index] : pages.rowAt(index - count)),
    show: showBoth,
  };
}
