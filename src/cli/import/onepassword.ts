/**
 * Reads 1Password's export (.1pux): every field of every item that is neither archived nor in the trash, under
 * VAULT/ITEM.
 * SOURCE: support.1password.com/1pux-format
 */

import { unzipSync } from 'fflate';
import { UsageError } from '../../platform/errors.ts';
import { decodeUtf8 } from '../input.ts';
import { type AddField, type ImportSource, Reader } from './item.ts';
import { isObject, type JsonObject, objectOf, objectsOf, parseJson, textOf, valueText } from './json.ts';

/** The file of the archive that contains the items. */
const DATA = 'export.data';
const MAX_ENTRIES = 100_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** @throws UsageError */
export function readOnePassword(bytes: Uint8Array, name: string): ImportSource {
  const data = `${name}: ${DATA}`;
  const root = parseJson(decodeUtf8(unpack(bytes, name), data), data);
  if (!isObject(root) || !Array.isArray(root['accounts'])) throw new UsageError(`${data} has no accounts list`);
  const reader = new Reader();
  const vaults = objectsOf(root, 'accounts').flatMap((account) => objectsOf(account, 'vaults'));
  for (const vault of vaults) {
    const title = textOf(objectOf(vault, 'attrs') ?? vault, 'name') ?? '';
    for (const item of objectsOf(vault, 'items')) addItem(reader, title, item);
  }
  return reader;
}

/** Whether the bytes begin with the signature of a zip archive. */
export function isArchive(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
}

/** Reads DATA from the archive. The sizes that an archive declares are not trusted. @throws UsageError */
function unpack(archive: Uint8Array, name: string): Uint8Array {
  if (!isArchive(archive)) throw new UsageError(`${name}: is not a .1pux file, which must be a zip archive`);
  let [entries, matches] = [0, 0];
  try {
    const { [DATA]: content } = unzipSync(archive, {
      filter: (file) => {
        // An archive may declare billions of entries that it does not have.
        if (++entries > MAX_ENTRIES) throw new UsageError(`${name}: contains more than ${MAX_ENTRIES} files`);
        if (file.name !== DATA) return false;
        // Each would be unpacked, and thousands may share the same compressed bytes.
        if (++matches > 1) throw new UsageError(`${name}: contains ${DATA} twice`);
        if (file.originalSize > MAX_BYTES) throw new UsageError(`${name}: ${DATA} is too large when unpacked`);
        return true;
      },
    });
    if (content === undefined) throw new UsageError(`${name}: the zip archive does not contain ${DATA}`);
    return content;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${name}: the zip archive cannot be read`, 'Export it again; the file may be incomplete.');
  }
}

function addItem(reader: Reader, vault: string, item: JsonObject): void {
  const overview = objectOf(item, 'overview') ?? item;
  const title = textOf(overview, 'title') ?? '';
  const where = `${vault} › ${title}`;
  const state = textOf(item, 'state') ?? 'active';
  if (state !== 'active') {
    reader.skip(where, state === 'archived' ? 'it is archived' : 'it is in the trash');
    return;
  }
  const details = objectOf(item, 'details');
  if (details === null) return;
  const add = reader.item([vault, title], textOf(overview, 'url'), where);
  for (const field of objectsOf(details, 'loginFields')) addLoginField(field, add);
  add('password', textOf(details, 'password'), 'password');
  add('notes', textOf(details, 'notesPlain'), 'note');
  for (const section of objectsOf(details, 'sections')) {
    const heading = textOf(section, 'title') ?? '';
    for (const field of objectsOf(section, 'fields')) addField(heading, field, add);
  }
  if (objectOf(details, 'documentAttributes') !== null) {
    reader.skip(where, 'its attached file is not imported; store it with: leasehold put PATH @FILE');
  }
}

function addLoginField(field: JsonObject, add: AddField): void {
  const name = textOf(field, 'designation') || textOf(field, 'name') || 'field';
  const isPassword = name === 'password' || textOf(field, 'fieldType') === 'P';
  add(name, textIn(field['value']), isPassword ? 'password' : null);
}

/** The value of a field is an object with one member, whose name is the kind. */
function addField(heading: string, field: JsonObject, add: AddField): void {
  const [kind, value] = Object.entries(objectOf(field, 'value') ?? {})[0] ?? ['', null];
  const names = [...(heading === '' ? [] : [heading]), textOf(field, 'title') || kind];
  if (kind === 'sshKey' && isObject(value)) add(names, textOf(value, 'privateKey'), 'ssh_key');
  else add(names, textIn(value), kind === 'totp' ? 'totp' : null);
}

/** The text of a value: an e-mail address is wrapped in an object; other objects stay JSON. */
function textIn(value: unknown): string {
  const wrapped = isObject(value) ? (textOf(value, 'email_address') ?? textOf(value, 'string')) : null;
  return wrapped ?? valueText(value);
}
