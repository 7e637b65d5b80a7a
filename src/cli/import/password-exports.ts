/**
 * Reads the exports of password managers: Bitwarden's unencrypted JSON, every field of every item outside the trash,
 * and the CSV of 1Password and Bitwarden, which contains less.
 * SOURCE: bitwarden.com/help/condition-bitwarden-import, the export classes of the Bitwarden client, and the header row
 * that 1Password 8 exports.
 */

import { CsvError, parse } from 'csv-parse/sync';
import { UsageError } from '../../platform/errors.ts';
import { isObject, type JsonObject, objectOf, objectsOf, parseJson, textOf, valueText } from './json.ts';
import { type ImportSource, Reader } from './source.ts';

const KINDS = ['login', 'card', 'identity', 'sshKey', 'bankAccount', 'driversLicense', 'passport'];
const TYPES = new Map([
  ['totp', 'totp'],
  ['privateKey', 'ssh_key'],
]);
/** The type of a field that only refers to another field. */
const LINKED_FIELD = '3';

/** @throws UsageError for an invalid or an encrypted export */
export function readBitwarden(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  if (!isObject(root)) throw new UsageError(`${name}: is not a Bitwarden export`);
  if (root['encrypted'] === true) {
    throw new UsageError(
      `${name}: is an encrypted export, which only Bitwarden can open`,
      'Export it again with the file format .json (not “.json (Encrypted)”), import it, then delete the file.',
    );
  }
  if (!Array.isArray(root['items'])) throw new UsageError(`${name}: has no items list`);
  const folders = new Map(
    ['folders', 'collections'].flatMap((list) =>
      objectsOf(root, list).map((each) => [textOf(each, 'id') ?? '', textOf(each, 'name') ?? ''] as const),
    ),
  );
  const reader = new Reader();
  for (const item of objectsOf(root, 'items')) addItem(reader, folders, item);
  return reader;
}

function addItem(reader: Reader, folders: ReadonlyMap<string, string>, item: JsonObject): void {
  const title = textOf(item, 'name') ?? '';
  const { collectionIds } = item;
  const [firstCollection] = Array.isArray(collectionIds) ? collectionIds : [];
  const id = textOf(item, 'folderId') ?? (typeof firstCollection === 'string' ? firstCollection : '');
  const parent = folders.get(id) ?? '';
  const where = parent === '' ? title : `${parent} › ${title}`;
  if (textOf(item, 'deletedDate') !== null) {
    reader.skip(where, 'it is in the trash');
    return;
  }
  const login = objectOf(item, 'login') ?? {};
  const add = reader.item([...foldersIn(parent), title], textOf(objectsOf(login, 'uris')[0] ?? {}, 'uri'), where);
  for (const kind of KINDS) {
    const fields = objectOf(item, kind) ?? {};
    for (const field of Object.keys(fields)) add(field, textOf(fields, field), TYPES.get(field));
  }
  add('notes', textOf(item, 'notes'), 'note');
  for (const field of objectsOf(item, 'fields')) {
    if (valueText(field['type']) !== LINKED_FIELD) add(textOf(field, 'name') || 'field', textOf(field, 'value'));
  }
  if (objectsOf(login, 'fido2Credentials').length > 0) {
    reader.skip(where, 'its passkey is not imported, because it works only in a browser');
  }
}

/** Bitwarden separates nested folders with slashes. */
function foldersIn(text: string): readonly string[] {
  return text.split('/').filter((segment) => segment !== '');
}

type Row = Readonly<Record<string, string>>;

const MAX_ROW_BYTES = 4 * 1024 * 1024;

/** @throws UsageError if the columns belong to neither program */
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
