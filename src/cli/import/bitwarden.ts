/**
 * Reads Bitwarden's unencrypted JSON export: every field of every item outside the trash.
 * SOURCE: bitwarden.com/help/condition-bitwarden-import, and the export classes of the Bitwarden client.
 */

import { UsageError } from '../../platform/errors.ts';
import { type ImportSource, Reader } from './item.ts';
import { isObject, type JsonObject, objectOf, objectsOf, parseJson, textOf, valueText } from './json.ts';

/** The member that contains the fields of each item type. */
const KINDS = ['login', 'card', 'identity', 'sshKey', 'bankAccount', 'driversLicense', 'passport'];
const TYPES = new Map([
  ['totp', 'totp'],
  ['privateKey', 'ssh_key'],
]);
/** The type of a field that only refers to another field. */
const LINKED_FIELD = '3';

/** @throws UsageError also for an encrypted export */
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
  const parent = folders.get(textOf(item, 'folderId') ?? String(firstCollection)) ?? '';
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
export function foldersIn(text: string): readonly string[] {
  return text.split('/').filter((segment) => segment !== '');
}
