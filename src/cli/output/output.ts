/**
 * Prints records to standard output as a table, JSON, YAML or shell variables. Without a terminal width nothing is
 * truncated.
 */

import { Help } from 'commander';
import { isLoaderVariable } from '../../masking/secret-names.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteForShell } from '../../platform/installation.ts';
import { coloured, hasColours, printNotice, type Terminal } from '../terminal.ts';
import { escapeControls, escapeText, type Format, type Printable, toCell, toText } from './cells.ts';

export interface Output {
  readonly format: Format;
  readonly field: string | null;
  /** Whether a table is printed, to which sentences can be added. */
  readonly isTable: boolean;
  record(record: Printable, columns?: readonly string[]): Promise<void>;
  /**
   * Prints a list of records. An empty list prints `nothing` on standard error instead of a table; null prints nothing.
   * Other formats print an empty list.
   */
  records(records: readonly Printable[], columns: readonly string[], nothing: string | null): Promise<void>;
  text(text: string): void;
  jsonLine(record: Printable): void;
  variable(name: string, value: string): void;
}

export function createOutput(terminal: Terminal, format: Format, field: string | null): Output {
  const { stdout } = terminal;
  const write = (text: string): void => void stdout.write(text);
  const isColoured = hasColours(terminal, stdout);
  const width = stdout.isTTY === true ? (stdout.columns ?? null) : null;
  // Escape control characters on a terminal; a pipe receives every byte.
  const toTerminal = stdout.isTTY === true ? escapeText : (text: string): string => text;
  const print = async (value: Printable | readonly Printable[], columns: readonly string[]): Promise<void> => {
    if (field !== null) {
      const records = Array.isArray(value) ? (value as readonly Printable[]) : [value as Printable];
      const toSafe = field === 'value' ? escapeText : escapeControls;
      const toLine = stdout.isTTY === true ? toSafe : (text: string): string => text;
      for (const record of records) write(`${toLine(toText(pick(record, field)))}\n`);
      return;
    }
    switch (format) {
      case 'json':
        write(`${toTerminal(JSON.stringify(value, null, 2))}\n`);
        return;
      case 'yaml': {
        const { stringify } = await import('yaml');
        const text = stringify(value, { lineWidth: 0 });
        // Only quoted YAML strings can contain escapes.
        const isSafe = toTerminal(text) === text;
        write(isSafe ? text : toTerminal(stringify(value, { lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE' })));
        return;
      }
      case 'env':
        write(toVariables(value, stdout.isTTY === true));
        return;
      case 'table':
        write(toTable(value, columns, { isColoured, width }));
    }
  };
  const isTable = format === 'table' && field === null;
  return {
    format,
    field,
    isTable,
    record: (record, columns = Object.keys(record)) => print(record, columns),
    async records(records, columns, nothing) {
      if (records.length > 0 || !isTable) return print(records, columns);
      if (nothing !== null) printNotice(terminal, nothing);
    },
    text: (text) => write(`${toTerminal(text)}\n`),
    jsonLine: (record) => write(`${toTerminal(JSON.stringify(record))}\n`),
    variable: (name, value) => write(variableLine(name, value, stdout.isTTY === true)),
  };
}

/** @throws UsageError for an unknown field */
function pick(record: Printable, field: string): unknown {
  if (Object.hasOwn(record, field)) return record[field];
  throw new UsageError(
    `--field: unknown field ${JSON.stringify(field)}; must be one of ${Object.keys(record).join(', ')}`,
  );
}

/**
 * Shell assignments, NAME='value'; the names of list items are numbered from 1. The prefix prevents a field from
 * replacing a variable such as PATH, or one that configures this command. Control characters are escaped on a terminal.
 */
function toVariables(value: Printable | readonly Printable[], isOnTerminal: boolean): string {
  const linesOf = (record: Printable, suffix: string): string =>
    Object.entries(record)
      .map(([field, each]) => variableLine(`OUT_${toVariableName(field)}${suffix}`, toText(each), isOnTerminal))
      .join('');
  if (!Array.isArray(value)) return linesOf(value as Printable, '');
  return (value as readonly Printable[]).map((record, at) => linesOf(record, `_${at + 1}`)).join('');
}

function variableLine(name: string, value: string, isOnTerminal: boolean): string {
  return `${name}=${isOnTerminal ? escapeControls(quoteForShell(value)) : quoteForShell(value)}\n`;
}

/** The text in upper case, with `_` for other characters. */
export function toVariableName(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9]/g, '_')
    .toUpperCase()
    .replace(/^(?=\d)/, '_');
}

/** @throws UsageError for a variable that changes how programs load code */
export function assertNotLoaderVariable(name: string): string {
  if (!isLoaderVariable(name)) return name;
  throw new UsageError(
    `the variable would be ${name}, which changes how programs load code`,
    `Choose another name: export NAME="$(leasehold get PATH)"`,
  );
}

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
    const first = cells.slice(0, -1).map((cell, at) => shorten(cell, widths[at] ?? 0).padEnd(widths[at] ?? 0) + GAP);
    const last = cells.at(-1) ?? '';
    return first.join('') + (isTooWide ? wrap(last, before, style) : shorten(last, widths.at(-1) ?? 0));
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

function shorten(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, width - 1)}…`;
}
