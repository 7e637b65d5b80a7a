/**
 * Reads the CSV exports of 1Password and Bitwarden, which contain less than their other formats.
 * SOURCE: bitwarden.com/help/condition-bitwarden-import; the header row that 1Password 8 exports.
 */

import { CsvError, parse } from 'csv-parse/sync';
import { UsageError } from '../../platform/errors.ts';
import { foldersIn } from './bitwarden.ts';
import { type ImportSource, Reader } from './item.ts';

/** A row's cells by column, named in lower case. */
type Row = Readonly<Record<string, string>>;

const MAX_ROW_BYTES = 4 * 1024 * 1024;

/** @throws UsageError when the columns are those of neither program */
export function readCsv(text: string, name: string): ImportSource {
  const [columns = [], ...rows] = readRows(text, name);
  const reader = new Reader();
  const isFrom = (...known: readonly string[]): boolean => known.every((column) => columns.includes(column));
  const addRow = isFrom('title', 'password') ? addOnePassword : isFrom('name', 'login_password') ? addBitwarden : null;
  if (addRow === null) {
    const known = 'Title, Url, Username, Password … (1Password), or folder, name, login_password … (Bitwarden)';
    throw new UsageError(`${name}: unknown columns; must be ${known}`);
  }
  for (const cells of rows) {
    addRow(reader, Object.fromEntries(cells.map((cell, at) => [columns[at] ?? '', cell])), name);
  }
  return reader;
}

function addOnePassword(reader: Reader, row: Row, name: string): void {
  const { title = '', url, username, password, otpauth, notes } = row;
  const where = `${name} › ${title}`;
  if (row['archived']?.toLowerCase() === 'true') {
    reader.skip(where, 'it is archived');
    return;
  }
  const add = reader.item([title], url, where);
  add('username', username);
  add('password', password, 'password');
  add('one-time password', otpauth, 'totp');
  add('notes', notes, 'note');
}

function addBitwarden(reader: Reader, row: Row, name: string): void {
  const { name: title = '', login_uri, login_username, login_password, login_totp, notes, fields = '' } = row;
  // The export of an organization has collections instead; the first one is used.
  const parent = row['folder'] || (row['collections']?.split(',')[0] ?? '');
  const where = `${name} › ${title}`;
  const add = reader.item([...foldersIn(parent), title], login_uri, where);
  add('username', login_username);
  add('password', login_password, 'password');
  add('totp', login_totp, 'totp');
  add('notes', notes, 'note');
  // Custom fields have one line each; a line without a name continues the value above it.
  const custom: [name: string, value: string][] = [];
  for (const line of fields.split(/\r?\n/)) {
    const border = line.indexOf(': ');
    const last = custom.at(-1);
    if (border > 0) custom.push([line.slice(0, border), line.slice(border + 2)]);
    else if (last !== undefined) last[1] += `\n${line}`;
    else if (line !== '') reader.skip(where, 'a custom field has no name');
  }
  for (const [label, value] of custom) add(label, value);
}

/** The columns in lower case, then the rows. @throws UsageError */
function readRows(text: string, name: string): readonly (readonly string[])[] {
  try {
    const [heading = [], ...rows]: string[][] = parse(text, { skip_empty_lines: true, max_record_size: MAX_ROW_BYTES });
    const columns = heading.map((column) => column.trim().toLowerCase());
    if (new Set(columns).size < columns.length) throw new UsageError(`${name}: two columns have the same name`);
    return [columns, ...rows];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // WHY without its message: it may quote a cell.
    throw new UsageError(`${name}:${String(error['lines'] ?? '?')}: is not valid CSV (${error.code})`);
  }
}
