/** What a command prints: records as a table, JSON, YAML or variables, on standard output, and nothing else there. */
import { UsageError } from '../../platform/errors.ts';
import { hasColours, printNotice, type Terminal } from '../terminal.ts';
import { escapeControls, harmlessJson, type Printable, toText } from './cells.ts';
import { toTable } from './table.ts';
import { toVariables, variableLine } from './variables.ts';

export const FORMATS = ['table', 'json', 'yaml', 'env'] as const;
export type Format = (typeof FORMATS)[number];

export interface Output {
  readonly format: Format;
  /** Whether sentences may be printed, too: a table was asked for, and not one field alone. */
  readonly isForPeople: boolean;
  /** One record. `columns` are what a table shows, all fields where they are left out. */
  record(record: Printable, columns?: readonly string[]): Promise<void>;
  /**
   * A list of records. An empty one is an empty list for programs, and for people no headings, but `nothing`, said on standard error;
   * null where the command says it anyway.
   */
  records(records: readonly Printable[], columns: readonly string[], nothing: string | null): Promise<void>;
  /** Text as it is, with the end of a line; for what is no record. */
  text(text: string): void;
  /** A line of JSON, for a record of many that come one after the other. */
  jsonLine(record: Printable): void;
  /** A line NAME='value' of a shell. */
  variable(name: string, value: string): void;
}

export function createOutput(terminal: Terminal, format: Format, field: string | null): Output {
  const { stdout } = terminal;
  const write = (text: string): void => void stdout.write(text);
  const isColoured = hasColours(terminal, stdout);
  const width = stdout.isTTY === true ? (stdout.columns ?? null) : null;
  // What others wrote must not steer a terminal; a pipe gets every byte.
  const toTerminal = stdout.isTTY === true ? harmlessJson : (text: string): string => text;
  const print = async (value: Printable | readonly Printable[], columns: readonly string[]): Promise<void> => {
    if (field !== null) {
      const records = Array.isArray(value) ? (value as readonly Printable[]) : [value as Printable];
      // What others wrote must not steer a terminal; a value that was asked for is shown as it is.
      const toLine = stdout.isTTY === true && field !== 'value' ? escapeControls : (text: string): string => text;
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
        // Only quoted text can hold escapes.
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
    isForPeople,
    record: (record, columns = Object.keys(record)) => print(record, columns),
    async records(records, columns, nothing) {
      if (records.length > 0 || !isForPeople) return print(records, columns);
      if (nothing !== null) printNotice(terminal, nothing);
    },
    text: (text) => write(`${text}\n`),
    jsonLine: (record) => write(`${toTerminal(JSON.stringify(record))}\n`),
    variable: (name, value) => write(variableLine(name, value, stdout.isTTY === true)),
  };
}

/** @throws UsageError for a field that the record does not have */
function pick(record: Printable, field: string): unknown {
  if (Object.hasOwn(record, field)) return record[field];
  throw new UsageError(`--field: there is no ${JSON.stringify(field)}; there are ${Object.keys(record).join(', ')}`);
}
