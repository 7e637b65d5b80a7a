/** Formats records as tables. Without a terminal width nothing is truncated. */
import { Help } from 'commander';
import { coloured } from '../terminal.ts';
import { escapeControls, type Printable, toCell } from './cells.ts';

interface TableStyle {
  readonly isColoured: boolean;
  readonly width: number | null;
}

const GAP = '  ';
const MIN_WIDTH = 12;
const MIN_LAST_WIDTH = 24;
/** Columns that can be truncated. A truncated path, id or finding would be useless. */
const PROSE: ReadonlySet<string> = new Set(['description', 'reason', 'public_key', 'resources']);

export function toTable(
  value: Printable | readonly Printable[],
  columns: readonly string[],
  style: TableStyle,
): string {
  return Array.isArray(value) ? toRows(value, columns, style) : toFields(value as Printable, columns, style);
}

const heading = (text: string, { isColoured }: TableStyle): string => (isColoured ? coloured('bold', text) : text);
export const toHeading = (column: string): string => column.replaceAll('_', ' ').toUpperCase();

function toFields(record: Printable, columns: readonly string[], style: TableStyle): string {
  // The field names of a response are text from the server too.
  const labels = columns.map(escapeControls);
  const longest = Math.max(...labels.map(({ length }) => length));
  const toLine = (column: string, at: number): string => {
    const text = wrap(toCell(record[column]), longest + GAP.length, style);
    return `${heading((labels[at] ?? '').padEnd(longest), style)}${GAP}${text}\n`;
  };
  return columns.map(toLine).join('');
}

function toRows(records: readonly Printable[], columns: readonly string[], style: TableStyle): string {
  const headings = columns.map(toHeading);
  const layOut = (toText: (value: unknown) => string) => {
    const rows = records.map((record) => columns.map((column) => toText(record[column])));
    const widths = headings.map(({ length }, at) =>
      rows.reduce((longest, row) => Math.max(longest, row[at]?.length ?? 0), length),
    );
    return { rows, ...fit(widths, columns, style) };
  };
  const full = layOut(toCell);
  const { rows, widths, isTooWide } = full.isTooWide ? layOut(toShortCell) : full;
  const before = sumOf(widths.slice(0, -1)) + GAP.length * (widths.length - 1);
  // Without room for the last column, print each record as a block; otherwise the terminal would break words.
  if (isTooWide && (style.width ?? 0) - before < MIN_LAST_WIDTH)
    return records.map((record) => toFields(record, columns, style)).join('\n');
  const line = (cells: readonly string[]): string => {
    const first = cells.slice(0, -1).map((cell, at) => cut(cell, widths[at] ?? 0).padEnd(widths[at] ?? 0) + GAP);
    const last = cells.at(-1) ?? '';
    return first.join('') + (isTooWide ? wrap(last, before, style) : cut(last, widths.at(-1) ?? 0));
  };
  return [heading(line(headings), style), ...rows.map(line)].map((text) => `${text}\n`).join('');
}

function toShortCell(value: unknown): string {
  return toCell(value).replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/, '$1Z');
}

/** Wraps text that begins at a column of the terminal at its spaces; a longer word stays whole. */
export function wrap(text: string, column: number, { width }: Pick<TableStyle, 'width'>): string {
  const room = (width ?? Infinity) - column;
  if (text.length <= room) return text;
  const help = Object.assign(new Help(), { minWidthToWrap: 1 });
  return help.boxWrap(text, room).replaceAll('\n', `\n${' '.repeat(column)}`);
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

/** Shrinks each column of prose by the same share, but not below the minimum, when the line is too wide. */
function fit(widths: readonly number[], columns: readonly string[], { width }: TableStyle) {
  const room = (width ?? Infinity) - GAP.length * (widths.length - 1);
  const prose = widths.filter((_, at) => PROSE.has(columns[at] ?? ''));
  const share = Math.min(1, (room - sumOf(widths) + sumOf(prose)) / sumOf(prose));
  const fitted = widths.map((each, at) =>
    PROSE.has(columns[at] ?? '') ? Math.min(each, Math.max(MIN_WIDTH, Math.floor(each * share))) : each,
  );
  return { widths: fitted, isTooWide: sumOf(fitted) > room };
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
