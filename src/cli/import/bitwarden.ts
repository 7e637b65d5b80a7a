/**
 * Reads Bitwarden's unencrypted JSON export: every field of every item outside the trash.
 * SOURCE: bitwarden.com/help/condition-bitwarden-import, and the export classes of the Bitwarden client.
 */

import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { type ImportSource, Reader, siteOf, typeByName } from './item.ts';
import { type JsonObject, objectOf, objectsOf, parseJson, textOf } from './json.ts';

/** The member that contains the fields of each item type. */
const KINDS = ['login', 'card', 'identity', 'sshKey', 'bankAccount', 'driversLicense', 'passport'];
const TYPES: ReadonlyMap<string, string> = new Map([
  ['totp', 'totp'],
  ['privateKey', 'ssh_key'],
]);
/** The type of a field that only refers to another field. */
const LINKED_FIELD = '3';

/** @throws UsageError also for an encrypted export */
export function readBitwarden(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  if (root.kind !== 'object') throw new UsageError(`${name}: is not a Bitwarden export`);
  const encrypted = root.members.get('encrypted');
  if (encrypted?.text === 'true') {
    throw new UsageError(
      `${name}: is an encrypted export, which only Bitwarden can open`,
      'Export it again with the file format .json (not “.json (Encrypted)”), import it, then delete the file.',
    );
  }
  if (root.members.get('items')?.kind !== 'array') throw new UsageError(`${name}: has no items list`);
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
  const parent = folders.get(textOf(item, 'folderId') ?? firstCollection(item)) ?? '';
  const where = parent === '' ? title : `${parent} › ${title}`;
  if (textOf(item, 'deletedDate') !== null) {
    reader.skip(where, 'it is in the trash');
    return;
  }
  // Bitwarden separates nested folders with slashes.
  const above = parent.split('/').filter((segment) => segment !== '');
  const description = siteOf(textOf(objectsOf(objectOf(item, 'login') ?? item, 'uris')[0] ?? item, 'uri'));
  const add = (field: string, value: string | null, type: string | null): void => {
    if (value === null || value === '') return;
    const names = [...above, title, field];
    reader.add({ names, value: new Secret(value), type, description, where: `${where} › ${field}` });
  };
  for (const kind of KINDS) {
    for (const [field, value] of objectOf(item, kind)?.members ?? []) {
      if (value.kind === 'string') add(field, value.value, TYPES.get(field) ?? typeByName(field));
    }
  }
  add('notes', textOf(item, 'notes'), 'note');
  for (const field of objectsOf(item, 'fields')) {
    const label = textOf(field, 'name') ?? '';
    if (field.members.get('type')?.text === LINKED_FIELD) continue;
    add(label === '' ? 'field' : label, textOf(field, 'value'), typeByName(label));
  }
  const passkeys = objectsOf(objectOf(item, 'login') ?? item, 'fido2Credentials');
  if (passkeys.length > 0) reader.skip(where, 'its passkey is not imported, because it works only in a browser');
}

function firstCollection(item: JsonObject): string {
  const ids = item.members.get('collectionIds');
  const first = ids?.kind === 'array' ? ids.items[0] : undefined;
  return first?.kind === 'string' ? first.value : '';
}
