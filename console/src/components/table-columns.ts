/** The columns of a table, and the choice of columns that fit. */
import { type ReactNode, useEffect, useMemo, useState } from 'react';

export interface TableColumn<T> {
  readonly title: string;
  /** A CSS grid track in rem, such as `10rem` or `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: T) => ReactNode;
  /** Hide order while the details panel is open: 1 hides first; undefined never hides. */
  readonly leaves?: number;
}

export const minWidthOf = ({ width }: { readonly width: string }): string =>
  /^minmax\(([^,]+),/.exec(width)?.[1] ?? width;

/**
 * All columns; beside open details, only those that fit, because a clipped table does not show that it continues
 * sideways. The details contain the hidden columns.
 */
export function useFittingColumns<T>(
  table: HTMLElement | null,
  columns: readonly TableColumn<T>[],
  hasDetails: boolean,
): readonly TableColumn<T>[] {
  const [roomRem, setRoomRem] = useState(Number.POSITIVE_INFINITY);
  useEffect(() => {
    if (table === null) return undefined;
    const remPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const observer = new ResizeObserver(() => setRoomRem(table.clientWidth / remPx));
    observer.observe(table);
    return () => observer.disconnect();
  }, [table]);
  return useMemo(() => {
    if (!hasDetails) return columns;
    const fitting = [...columns];
    const order = columns.filter(({ leaves }) => leaves !== undefined);
    order.sort((a, b) => (a.leaves ?? 0) - (b.leaves ?? 0));
    for (const column of order) {
      const neededRem = fitting.reduce((sum, each) => sum + Number.parseFloat(minWidthOf(each)), 0);
      if (neededRem <= roomRem) break;
      fitting.splice(fitting.indexOf(column), 1);
    }
    return fitting;
  }, [columns, hasDetails, roomRem]);
}
