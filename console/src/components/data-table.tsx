/**
 * A table of any length that draws only the rows in sight. Arrows, Page Up, Page Down, Home and End move; Enter opens a
 * row. INVARIANT: a row's cells are text or elements, never markup from data.
 */
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react';
import type { PagedRows } from './paged-rows.ts';

export interface TableColumn<T> {
  readonly title: string;
  /** A CSS grid track in rem, such as `10rem` or `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: T) => ReactNode;
  /** Hide order while the details panel is open: 1 hides first; undefined never hides. */
  readonly leaves?: number;
}

interface Props<T> {
  readonly label: string;
  readonly columns: readonly TableColumn<T>[];
  readonly rows: PagedRows<T>;
  readonly keyOf: (row: T) => string;
  /** The key of the row whose details are open. */
  readonly openKey?: string | null;
  readonly onOpen?: (row: T) => void;
  /** Shown instead of an empty table. */
  readonly empty: ReactNode;
}

const ROW_PX = 34;
const OVERSCAN_ROWS = 12;
/** Browsers limit the height of an element, and cut off a taller one. */
const MAX_ROWS = 900_000;
/** A pointer that moved further while its button was down did not click. */
const CLICK_PX = 5;

export function DataTable<T>({ label, columns: allColumns, rows, keyOf, openKey = null, onOpen, empty }: Props<T>) {
  // Kept as state, because an empty table has no element.
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const columns = useFittingColumns(scroller, allColumns, openKey !== null);
  const [current, setCurrent] = useState(0);
  const id = useId();
  const count = Math.min(rows.total, MAX_ROWS);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
    useFlushSync: false,
    // The header is inside the scroller.
    scrollPaddingStart: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  const { show } = rows;
  useEffect(() => show(first, last), [show, first, last]);
  const move = (index: number): void => {
    const next = Math.max(0, Math.min(count - 1, index));
    setCurrent(next);
    virtual.scrollToIndex(next);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const pageRows = Math.max(1, Math.floor((scroller?.clientHeight ?? 0) / ROW_PX) - 2);
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + pageRows,
      PageUp: current - pageRows,
      Home: 0,
      End: count - 1,
    };
    const target = targets[event.key];
    const row = rows.rowAt(current);
    if (target !== undefined) move(target);
    else if (event.key === 'Enter' && row !== undefined) onOpen?.(row);
    else return;
    event.preventDefault();
  };
  if (rows.total === 0 && !rows.isPending && rows.error === null) return empty;
  const tracks = columns.map(({ width }) => width).join(' ');
  // Header and rows are separate grids. With equal widths their columns line up.
  const minWidth = `calc(${columns.map(minWidthOf).join(' + ')})`;
  return (
    <div
      ref={setScroller}
      className="table"
      role="grid"
      aria-label={label}
      aria-rowcount={rows.total + 1}
      aria-colcount={columns.length}
      aria-busy={rows.isPending}
      aria-activedescendant={items.some(({ index }) => index === current) ? `${id}-${current}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div className="table-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: tracks, minWidth }}>
        {columns.map(({ title }) => (
          <div key={title} role="columnheader">
            {title}
          </div>
        ))}
      </div>
      <div className="table-body" role="rowgroup" style={{ height: virtual.getTotalSize(), minWidth }}>
        {items.map(({ index, start }) => {
          const row = rows.rowAt(index);
          return (
            <Row
              key={index}
              id={`${id}-${index}`}
              index={index}
              start={start}
              row={row}
              columns={columns as readonly TableColumn<unknown>[]}
              tracks={tracks}
              isCurrent={index === current}
              isOpen={row !== undefined && openKey !== null && keyOf(row) === openKey}
              onOpen={() => {
                setCurrent(index);
                if (row !== undefined) onOpen?.(row);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowProps {
  readonly id: string;
  readonly index: number;
  readonly start: number;
  readonly row: unknown;
  readonly columns: readonly TableColumn<unknown>[];
  readonly tracks: string;
  readonly isCurrent: boolean;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}

/** Rendered again only when its content changes: the function that opens a row stays the same for that row. */
const Row = memo(
  function Row({ id, index, start, row, columns, tracks, isCurrent, isOpen, onOpen }: RowProps) {
    const pressed = useRef<{ readonly x: number; readonly y: number } | null>(null);
    return (
      // The grid has the focus and handles the keys; the pointer is a second path.
      <div
        id={id}
        role="row"
        tabIndex={-1}
        aria-rowindex={index + 2}
        aria-selected={isOpen}
        className={`table-row${isCurrent ? ' current' : ''}`}
        style={{ gridTemplateColumns: tracks, transform: `translateY(${start}px)` }}
        onPointerDown={({ clientX, clientY }) => {
          pressed.current = { x: clientX, y: clientY };
        }}
        onPointerUp={({ button, clientX, clientY }) => {
          const { x, y } = pressed.current ?? { x: Number.NaN, y: Number.NaN };
          pressed.current = null;
          // A drag selects text.
          if (button === 0 && Math.hypot(clientX - x, clientY - y) <= CLICK_PX) onOpen();
        }}
      >
        {columns.map(({ title, cell }) => (
          <div key={title} role="gridcell">
            {row === undefined ? <span className="placeholder" /> : cell(row)}
          </div>
        ))}
      </div>
    );
  },
  (a, b) =>
    a.row === b.row &&
    a.start === b.start &&
    a.isCurrent === b.isCurrent &&
    a.isOpen === b.isOpen &&
    a.columns === b.columns,
);

const minWidthOf = ({ width }: { readonly width: string }): string => /^minmax\(([^,]+),/.exec(width)?.[1] ?? width;

/**
 * All columns; beside open details, only those that fit, because a clipped table does not show that it continues
 * sideways. The details contain the hidden columns.
 */
function useFittingColumns<T>(
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
