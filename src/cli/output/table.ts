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
/** What may be cut; a path or an id that is cut is of no use, and a finding is what was asked for. */
const PROSE: ReadonlySet<string> = new Set(['description', 'reason', 'public_key', 'resources']);

/** One record: a line a field. A list: a line a record, under its headings. */
export function toTable(value: Printable | readonly Printable[], columns: readonly string[], look: Look): string {
  return Array.isArray(value) ? toRows(value, columns, look) : toFields(value as Printable, columns, look);
}

const heading = (text: string, { isColoured }: Look): string => (isColoured ? styleText('bold', text) : text);
const toHeading = (column: string): string => column.replaceAll('_', ' ').toUpperCase();

function toFields(record: Printable, columns: readonly string[], look: Look): string {
  const longest = Math.max(...columns.map((column) => column.length));
  return columns.map((column) => `${heading(column.padEnd(longest), look)}${GAP}${toCell(record[column])}\n`).join('');
}

function toRows(records: readonly Printable[], columns: readonly string[], look: Look): string {
  const rows = records.map((record) => columns.map((column) => toCell(record[column])));
  const headings = columns.map(toHeading);
  const widths = fit(
    headings.map((text, at) => longestOf([text, ...rows.map((row) => row[at] ?? '')])),
    columns.map((column) => PROSE.has(column)),
    look,
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cut(cell, widths[at] ?? 0).padEnd(at === cells.length - 1 ? 0 : (widths[at] ?? 0)))
      .join(GAP);
  return [heading(line(headings), look), ...rows.map(line)].map((text) => `${text}\n`).join('');
}

function longestOf(texts: readonly string[]): number {
  return texts.reduce((longest, { length }) => Math.max(longest, length), 0);
}

/** The widest columns of those that may be cut give way until the line fits, or none can any more. */
function fit(widths: readonly number[], mayBeCut: readonly boolean[], { width }: Look): number[] {
  const fitted = [...widths];
  if (width === null) return fitted;
  const room = width - GAP.length * (widths.length - 1);
  for (;;) {
    const sum = fitted.reduce((all, each) => all + each, 0);
    const widest = Math.max(0, ...fitted.filter((_, at) => mayBeCut[at]));
    if (sum <= room || widest <= SHORTEST) return fitted;
    const at = fitted.findIndex((each, place) => each === widest && mayBeCut[place] === true);
    fitted[at] = Math.max(SHORTEST, widest - (sum - room));
  }
}

function cut(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
