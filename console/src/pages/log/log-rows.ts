/** The rows of the audit log: pages by cursor, and before them the entries that are added while the page is open. */
import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import type { AuditEntry, AuditFilter, Page } from '../../../../src/client/types.ts';
import { type PagedRows, usePagedRows } from '../../components/paged-rows.ts';
import { client } from '../../session/console-client.ts';

const INTERVAL_MS = 1000;
const MAX_PAGE_ROWS = 1000;
/** Limit of the kept entries. Beyond it, the operator is asked to start again. */
const MAX_ROWS = 5000;

/**
 * The rows of the audit log: the live tail, then the pages. The pages end at the newest entry of the moment when they
 * were opened, because new entries would move every row while an operator reads.
 */
export function useLogRows(filter: AuditFilter, isTail: boolean) {
  const [generation, setGeneration] = useState(0);
  const key = JSON.stringify([filter, generation]);
  const source = useMemo(() => new CursorPages(JSON.parse(key)[0] as AuditFilter), [key]);
  const pages = usePagedRows<AuditEntry>({
    queryKey: ['audit', key],
    read: (page, signal) => source.read(page, signal),
  });
  const tail = useTail(filter, pages.isPending ? null : source.newest, isTail);
  const rows = useJoined(tail.rows, pages);
  return { rows, tail, refresh: () => setGeneration((before) => before + 1) };
}

/** The sequence number of the newest entry of any kind; 0 for an empty audit log. */
export async function readNewest(signal: AbortSignal): Promise<number> {
  return (await client.audit.list({ limit: 1 }, { signal })).data[0]?.seq ?? 0;
}

/**
 * Reads pages by cursor: the newest entry is fixed when the first page is read, and each later page continues after the
 * nearest known one by `before`. WHY not by `offset` alone: new entries would move every row, and the server would
 * count through all previous rows.
 */
class CursorPages {
  readonly #filter: AuditFilter;
  /** The sequence number of the entry before a row, by the index of the row. */
  readonly #before = new Map<number, number>();
  #total: number | null = null;
  #newest: number | null = null;

  constructor(filter: AuditFilter) {
    this.#filter = filter;
  }

  /** The newest entry of any kind at the first read; null before it. */
  get newest(): number | null {
    return this.#newest;
  }

  async read(page: { offset: number; limit: number }, signal: AbortSignal): Promise<Page<AuditEntry>> {
    this.#newest ??= await readNewest(signal);
    const start = this.#nearest(page.offset);
    const cursor = { before: this.#before.get(start) ?? this.#newest + 1 };
    const range = { limit: page.limit, offset: page.offset - start };
    const found = await client.audit.list({ ...this.#filter, ...range, ...cursor }, { signal });
    // The first response counts every entry; later ones count only those after a cursor.
    this.#total ??= found.meta.total;
    this.#note(page.offset, found.data);
    return { data: found.data, meta: { ...found.meta, total: this.#total } };
  }

  #nearest(offset: number): number {
    let nearest = 0;
    for (const index of this.#before.keys()) if (index <= offset && index > nearest) nearest = index;
    return nearest;
  }

  #note(offset: number, rows: readonly AuditEntry[]): void {
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) return;
    this.#before.set(offset, first.seq + 1);
    this.#before.set(offset + rows.length, last.seq);
  }
}

/**
 * The entries that were added since the page was opened. Each read covers only the entries after the newest known one,
 * so that it stays short for an audit log of any length and for a filter without matches.
 */
interface Tail {
  /** The new entries, newest first. */
  readonly rows: readonly AuditEntry[];
  /** Whether entries were skipped because too many were added. */
  readonly isFull: boolean;
}

interface Read {
  readonly after: number;
  readonly rows: readonly AuditEntry[];
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
function useTail(filter: AuditFilter, from: number | null, isOn: boolean): Tail {
  const state = useRef<{ readonly key: string; read: Read } | null>(null);
  const key = JSON.stringify([filter, from]);
  if (from !== null && state.current?.key !== key) state.current = { key, read: { after: from, rows: [] } };
  const { data } = useQuery({
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
  return { rows, isFull: rows.length >= MAX_ROWS };
}

/** The rows of the tail, and the pages after them. */
function useJoined(tail: readonly AuditEntry[], pages: PagedRows<AuditEntry>): PagedRows<AuditEntry> {
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
