/**
 * Rows of a long list, read by pages as they come into sight. WHY not an infinite query: the scroll bar reaches every
 * row of a million directly, and an infinite query would first read all previous pages.
 */
import { keepPreviousData, useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import type { Page } from '../../../src/client/types.ts';

export interface PagedRows<T> {
  readonly total: number;
  /** Undefined while its page is read. */
  rowAt(index: number): T | undefined;
  /** Reports the rows in sight. */
  show(first: number, last: number): void;
  /** Whether nothing has been read yet. */
  readonly isPending: boolean;
  readonly error: unknown;
  refetch(): void;
}

interface Options<T> {
  /** Identifies the list and its filters. */
  readonly queryKey: readonly unknown[];
  readonly read: (page: { offset: number; limit: number }, signal: AbortSignal) => Promise<Page<T>>;
  /** The interval at which the pages in sight are read again; off by default. */
  readonly refetchIntervalMs?: number;
}

const PAGE_ROWS = 200;

export function usePagedRows<T>({ queryKey, read, refetchIntervalMs }: Options<T>): PagedRows<T> {
  const [range, setRange] = useState({ first: 0, last: 0 });
  // The first page is always included, because its response contains the number of rows.
  const inSight = Array.from({ length: range.last - range.first + 1 }, (_, index) => range.first + index);
  const pages = [0, ...inSight.filter((page) => page > 0)];
  const results = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...queryKey, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => read({ offset: page * PAGE_ROWS, limit: PAGE_ROWS }, signal),
      placeholderData: keepPreviousData,
      ...(refetchIntervalMs === undefined
        ? { staleTime: Number.POSITIVE_INFINITY }
        : { refetchInterval: refetchIntervalMs }),
    })),
  });
  const total = results[0]?.data?.meta.total ?? 0;
  const show = useCallback((first: number, last: number) => {
    const next = { first: Math.floor(first / PAGE_ROWS), last: Math.floor(Math.max(first, last) / PAGE_ROWS) };
    setRange((before) => (before.first === next.first && before.last === next.last ? before : next));
  }, []);
  return {
    total,
    rowAt(index) {
      const result = results[pages.indexOf(Math.floor(index / PAGE_ROWS))];
      if (result === undefined || result.isPlaceholderData) return undefined;
      return result.data?.data[index % PAGE_ROWS];
    },
    show,
    isPending: results[0]?.isPending ?? true,
    error: results.find(({ error }) => error !== null)?.error ?? null,
    refetch: () => {
      for (const result of results) void result.refetch();
    },
  };
}

/** Rows that are already in memory, such as a short list. */
export function toRows<T>(rows: readonly T[]): PagedRows<T> {
  return {
    total: rows.length,
    rowAt: (index) => rows[index],
    show: () => undefined,
    isPending: false,
    error: null,
    refetch: () => undefined,
  };
}
