/** Records as columns for people: what is printed into a pipe is cut nowhere. */
import { styleText } from 'node:util';
import { type Printable, toCell } from './cells.ts';

interface Look {
  readonly isColoured: boolean;
  /** Columns of the terminal; null where there is none. */
  readonly width: number | null;
}

const GAP = '  ';
const SHORTEST = 12;
/** Of a last column that is wrapped. */
const MIN_LAST_WIDTH = 24;
/** What may be cut; a path or an id that is cut is of no use, and a finding is what was asked for. */
const PROSE: ReadonlySet<string> = new Set(['description', 'reason', 'public_key', 'resources']);

/** One record: a line a field. A list: a line a record, under its headings. */
export function toTable(value: Printable | readonly Printable[], columns: readonly string[], look: Look): string {
  return Array.isArray(value) ? toRows(value, columns, look) : toFields(value as Printable, columns, look);
}

const heading = (text: string, { isColoured }: Look): string => (isColoured ? styleText('bold', text) : text);
export const toHeading = (column: string): string => column.replaceAll('_', ' ').toUpperCase();

function toFields(record: Printable, columns: readonly string[], look: Look): string {
  const longest = longestOf(columns);
  const room = look.width === null ? Number.POSITIVE_INFINITY : look.width - longest - GAP.length;
  return columns
    .map((column) => {
      const text = wrap(toCell(record[column]), room).join(`\n${' '.repeat(longest)}${GAP}`);
      return `${heading(column.padEnd(longest), look)}${GAP}${text}\n`;
    })
    .join('');
}

function toRows(records: readonly Printable[], columns: readonly string[], look: Look): string {
  const headings = columns.map(toHeading);
  const dataDirPaths = (toText: (value: unknown) => string) => {
    const rows = records.map((record) => columns.map((column) => toText(record[column])));
    const widths = fit(
      headings.map((text, at) => longestOf([text, ...rows.map((row) => row[at] ?? '')])),
      columns.map((column) => PROSE.has(column)),
      look,
    );
    return { rows, widths, isTooWide: sumOf(widths) + GAP.length * (widths.length - 1) > (look.width ?? Infinity) };
  };
  const full = dataDirPaths(toCell);
  const { rows, widths, isTooWide } = full.isTooWide ? dataDirPaths(toShortCell) : full;
  const before = sumOf(widths.slice(0, -1)) + GAP.length * (widths.length - 1);
  const room = (look.width ?? Infinity) - before;
  // Without room for the last column's words each record is a block: a terminal would break lines in the middle of words.
  if (isTooWide && room < MIN_LAST_WIDTH) return records.map((record) => toFields(record, columns, look)).join('\n');
  const line = (cells: readonly string[]): string => {
    const [last = '', ...more] = wrap(cells.at(-1) ?? '', isTooWide ? room : Infinity);
    const first = cells.slice(0, -1).map((cell, at) => `${cut(cell, widths[at] ?? 0).padEnd(widths[at] ?? 0)}${GAP}`);
    const end = isTooWide ? last : cut(last, widths.at(-1) ?? 0);
    return [`${first.join('')}${end}`, ...more.map((text) => ' '.repeat(before) + text)].join('\n');
  };
  return [heading(line(headings), look), ...rows.map(line)].map((text) => `${text}\n`).join('');
}

/** A time to the second. */
function toShortCell(value: unknown): string {
  return toCell(value).replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/, '$1Z');
}

/** At blanks; a word that is longer stays whole. */
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

/** The widest columns of those that may be cut give way until the line fits, or none can any more. */
function fit(widths: readonly number[], mayBeCut: readonly boolean[], { width }: Look): number[] {
  const fitted = [...widths];
  if (width === null) return fitted;
  const room = width - GAP.length * (widths.length - 1);
  for (;;) {
    const sum = sumOf(fitted);
    const widest = Math.max(0, ...fitted.filter((_, at) => mayBeCut[at]));
    if (sum <= room || widest <= SHORTEST) return fitted;
    const at = fitted.findIndex((each, place) => each === widest && mayBeCut[place] === true);
    fitted[at] = Math.max(SHORTEST, widest - (sum - room));
  }
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
