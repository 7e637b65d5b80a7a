/**
 * Reads the CSV exports of 1Password and Bitwarden, which contain less than their other formats.
 * SOURCE: bitwarden.com/help/condition-bitwarden-import; the header row that 1Password 8 exports.
 */

import { CsvError, parse } from 'csv-parse/sync';
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { type ImportSource, Reader, siteOf, typeByName } from './item.ts';

/** Returns the cell of a column, named in lower case; empty when the row or file does not have it. */
type Row = (column: string) => string;

const OPTIONS = { info: true, skip_empty_lines: true, max_record_size: 4 * 1024 * 1024 } as const;

/** @throws UsageError when the columns are those of neither program */
export function readCsv(text: string, name: string): ImportSource {
  const { columns, rows } = readRows(text, name);
  const reader = new Reader();
  if (columns.has('title') && columns.has('password')) {
    for (const { row, line } of rows) addOnePassword(reader, row, `${name}:${line}`);
  } else if (columns.has('name') && columns.has('login_password')) {
    for (const { row, line } of rows) addBitwarden(reader, row, `${name}:${line}`);
  } else {
    const known = 'Title, Url, Username, Password … (1Password), or folder, name, login_password … (Bitwarden)';
    throw new UsageError(`${name}: unknown columns; must be ${known}`);
  }
  return reader;
}

function addOnePassword(reader: Reader, row: Row, where: string): void {
  if (row('archived').toLowerCase() === 'true') {
    reader.skip(where, 'it is archived');
    return;
  }
  const add = adderFor(reader, [row('title')], row('url'), where);
  add('username', row('username'), null);
  add('password', row('password'), 'password');
  add('one-time password', row('otpauth'), 'totp');
  add('notes', row('notes'), 'note');
}

function addBitwarden(reader: Reader, row: Row, where: string): void {
  // The export of an organization has collections instead; the first one is used.
  const parent = row('folder') === '' ? (row('collections').split(',')[0] ?? '') : row('folder');
  const above = parent.split('/').filter((segment) => segment !== '');
  const add = adderFor(reader, [...above, row('name')], row('login_uri'), where);
  add('username', row('login_username'), null);
  add('password', row('login_password'), 'password');
  add('totp', row('login_totp'), 'totp');
  add('notes', row('notes'), 'note');
  // Custom fields have one line each; a line without a name continues the value above it.
  const fields: [name: string, value: string][] = [];
  for (const line of row('fields').split(/\r?\n/)) {
    const border = line.indexOf(': ');
    const last = fields.at(-1);
    if (border > 0) fields.push([line.slice(0, border), line.slice(border + 2)]);
    else if (last !== undefined) last[1] += `\n${line}`;
    else if (line !== '') reader.skip(where, 'a custom field has no name');
  }
  for (const [label, value] of fields) add(label, value, typeByName(label));
}

type Add = (field: string, value: string, type: string | null) => void;

/** Returns a function that adds a value under the names `above`, unless its cell is empty. */
function adderFor(reader: Reader, above: readonly string[], url: string, where: string): Add {
  return (field, value, type) => {
    if (value === '') return;
    reader.add({ names: [...above, field], value: new Secret(value), type, description: siteOf(url), where });
  };
}

/** @throws UsageError */
function readRows(text: string, name: string) {
  const records = parseRecords(text, name);
  const columns = new Map((records[0]?.record ?? []).map((column, at) => [column.trim().toLowerCase(), at]));
  if (columns.size < (records[0]?.record.length ?? 0)) throw new UsageError(`${name}: two columns have the same name`);
  const rows = records.slice(1).map(({ record }, at) => ({
    row: (column: string): string => record[columns.get(column) ?? -1] ?? '',
    // The parser reports the line where a record ends, so this one begins after the one before it.
    line: (records[at]?.info.lines ?? 0) + 1,
  }));
  return { columns, rows };
}

interface Parsed {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

function parseRecords(text: string, name: string): readonly Parsed[] {
  try {
    // The types of the library ignore `info`, which wraps each record.
    return parse(text, OPTIONS) as unknown as readonly Parsed[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // WHY without its message: it may quote a cell.
    throw new UsageError(`${name}:${String(error['lines'] ?? '?')}: is not valid CSV (${error.code})`);
  }
}
