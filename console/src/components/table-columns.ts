/** The columns of a table, and which of them have room. */
import { type ReactNode, useEffect, useMemo, useState } from 'react';

export interface TableColumn<T> {
  readonly title: string;
  /** A CSS grid track in rem, such as `10rem` or `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: T) => ReactNode;
  /** Whether it is left out where details take the room: 1 for the first that is, 2 for the next. */
  readonly leaves?: number;
}

export const minWidthOf = ({ width }: { readonly width: string }): string =>
  /^minmax\(([^,]+),/.exec(width)?.[1] ?? width;

/**
 * All columns, or while details are open next to the table those that fit, because a cut table does not show that it
 * continues to the side. The details have what is left out.
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
