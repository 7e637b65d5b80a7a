/** Prints records to standard output as a table, JSON, YAML or shell variables. */
import { isLoaderVariable } from '../../masking/secret-names.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteForShell } from '../../platform/shell-command.ts';
import { hasColours, printNotice, type Terminal } from '../terminal.ts';
import { escapeControls, escapeText, type Format, type Printable, toText } from './cells.ts';
import { toTable } from './table.ts';

export interface Output {
  readonly format: Format;
  readonly field: string | null;
  /** Whether the output is a table, to which sentences can be added. */
  readonly isForPeople: boolean;
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
  const isForPeople = format === 'table' && field === null;
  return {
    format,
    field,
    isForPeople,
    record: (record, columns = Object.keys(record)) => print(record, columns),
    async records(records, columns, nothing) {
      if (records.length > 0 || !isForPeople) return print(records, columns);
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
