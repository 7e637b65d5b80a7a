/** Formats records as tables. Without a terminal width nothing is truncated. */
import { styleText } from 'node:util';
import { type Printable, toCell } from './cells.ts';

interface TableStyle {
  readonly isColoured: boolean;
  /** Width of the terminal, or null. */
  readonly width: number | null;
}

const GAP = '  ';
const MIN_WIDTH = 12;
/** Minimum width of a wrapped last column. */
const MIN_LAST_WIDTH = 24;
/** Columns that can be truncated. A truncated path, id or finding would be useless. */
const PROSE: ReadonlySet<string> = new Set(['description', 'reason', 'public_key', 'resources']);

/** One record: a line for each field. A list: headings and a line for each record. */
export function toTable(
  value: Printable | readonly Printable[],
  columns: readonly string[],
  style: TableStyle,
): string {
  return Array.isArray(value) ? toRows(value, columns, style) : toFields(value as Printable, columns, style);
}

const heading = (text: string, { isColoured }: TableStyle): string => (isColoured ? styleText('bold', text) : text);
export const toHeading = (column: string): string => column.replaceAll('_', ' ').toUpperCase();

function toFields(record: Printable, columns: readonly string[], style: TableStyle): string {
  const longest = longestOf(columns);
  const room = style.width === null ? Number.POSITIVE_INFINITY : style.width - longest - GAP.length;
  return columns
    .map((column) => {
      const text = wrap(toCell(record[column]), room).join(`\n${' '.repeat(longest)}${GAP}`);
      return `${heading(column.padEnd(longest), style)}${GAP}${text}\n`;
    })
    .join('');
}

function toRows(records: readonly Printable[], columns: readonly string[], style: TableStyle): string {
  const headings = columns.map(toHeading);
  const dataDirPaths = (toText: (value: unknown) => string) => {
    const rows = records.map((record) => columns.map((column) => toText(record[column])));
    const widths = fit(
      headings.map((text, at) => longestOf([text, ...rows.map((row) => row[at] ?? '')])),
      columns.map((column) => PROSE.has(column)),
      style,
    );
    return { rows, widths, isTooWide: sumOf(widths) + GAP.length * (widths.length - 1) > (style.width ?? Infinity) };
  };
  const full = dataDirPaths(toCell);
  const { rows, widths, isTooWide } = full.isTooWide ? dataDirPaths(toShortCell) : full;
  const before = sumOf(widths.slice(0, -1)) + GAP.length * (widths.length - 1);
  const room = (style.width ?? Infinity) - before;
  // Without room for the last column, print each record as a block; otherwise the terminal would break words.
  if (isTooWide && room < MIN_LAST_WIDTH) return records.map((record) => toFields(record, columns, style)).join('\n');
  const line = (cells: readonly string[]): string => {
    const [last = '', ...more] = wrap(cells.at(-1) ?? '', isTooWide ? room : Infinity);
    const first = cells.slice(0, -1).map((cell, at) => `${cut(cell, widths[at] ?? 0).padEnd(widths[at] ?? 0)}${GAP}`);
    const end = isTooWide ? last : cut(last, widths.at(-1) ?? 0);
    return [`${first.join('')}${end}`, ...more.map((text) => ' '.repeat(before) + text)].join('\n');
  };
  return [heading(line(headings), style), ...rows.map(line)].map((text) => `${text}\n`).join('');
}

/** Shortens timestamps to seconds. */
function toShortCell(value: unknown): string {
  return toCell(value).replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/, '$1Z');
}

/** Wraps at spaces; a longer word stays whole. */
function wrap(text: string, width: number): string[] {
  if (text.length <= width) return [text];
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

function longestOf(texts: readonly string[]): number {
  return texts.reduce((longest, { length }) => Math.max(longest, length), 0);
}

/** Shrinks the widest truncatable columns until the line fits or all have the minimum width. */
function fit(widths: readonly number[], isTruncatable: readonly boolean[], { width }: TableStyle): number[] {
  const fitted = [...widths];
  if (width === null) return fitted;
  const room = width - GAP.length * (widths.length - 1);
  for (;;) {
    const sum = sumOf(fitted);
    const widest = Math.max(0, ...fitted.filter((_, at) => isTruncatable[at]));
    if (sum <= room || widest <= MIN_WIDTH) return fitted;
    const at = fitted.findIndex((each, column) => each === widest && isTruncatable[column] === true);
    fitted[at] = Math.max(MIN_WIDTH, widest - (sum - room));
  }
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
