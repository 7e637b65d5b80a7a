/**
 * Reads 1Password's export (.1pux): every field of every item that is neither archived nor in the trash, under
 * VAULT/ITEM.
 * SOURCE: support.1password.com/1pux-format
 */

import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { decodeUtf8 } from '../input.ts';
import { isArchive, readEntry } from './archive.ts';
import { type ImportSource, Reader, siteOf, typeByName } from './item.ts';
import { type JsonObject, type JsonValue, objectOf, objectsOf, parseJson, textOf } from './json.ts';

/** @throws UsageError */
export function readOnePassword(bytes: Uint8Array, name: string): ImportSource {
  if (!isArchive(bytes)) throw new UsageError(`${name}: is not a .1pux file, which must be a zip archive`);
  const root = parseJson(
    decodeUtf8(readEntry(bytes, 'export.data', name), `${name}: export.data`),
    `${name}: export.data`,
  );
  if (root.kind !== 'object' || root.members.get('accounts')?.kind !== 'array') {
    throw new UsageError(`${name}: export.data has no accounts list`);
  }
  const reader = new Reader();
  const vaults = objectsOf(root, 'accounts').flatMap((account) => objectsOf(account, 'vaults'));
  for (const vault of vaults) {
    const title = textOf(objectOf(vault, 'attrs') ?? vault, 'name') ?? '';
    for (const item of objectsOf(vault, 'items')) addItem(reader, title, item);
  }
  return reader;
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
  const description = siteOf(textOf(overview, 'url'));
  const add = (names: readonly string[], text: string, type: string | null): void => {
    if (text === '') return;
    const given = type ?? typeByName(names.at(-1) ?? '');
    const location = `${where} › ${names.join(' › ')}`;
    reader.add({ names: [vault, title, ...names], value: new Secret(text), type: given, description, where: location });
  };
  addLogin(details, add);
  add(['password'], textOf(details, 'password') ?? '', 'password');
  add(['notes'], textOf(details, 'notesPlain') ?? '', 'note');
  for (const section of objectsOf(details, 'sections')) {
    const heading = textOf(section, 'title') ?? '';
    for (const field of objectsOf(section, 'fields')) addField(heading, field, add);
  }
  if (objectOf(details, 'documentAttributes') !== null) {
    reader.skip(where, 'its attached file is not imported; store it with: leasehold put PATH @FILE');
  }
}

type Add = (names: readonly string[], text: string, type: string | null) => void;

function addLogin(details: JsonObject, add: Add): void {
  for (const field of objectsOf(details, 'loginFields')) {
    const designation = textOf(field, 'designation') ?? '';
    const name = designation === '' ? (textOf(field, 'name') ?? '') : designation;
    const isPassword = designation === 'password' || textOf(field, 'fieldType') === 'P';
    add([name === '' ? 'field' : name], textIn(field.members.get('value')), isPassword ? 'password' : null);
  }
}

/** The value of a field is an object with one member, whose name is the kind. */
function addField(heading: string, field: JsonObject, add: Add): void {
  const [kind, value] = objectOf(field, 'value')?.members.entries().next().value ?? ['', undefined];
  const title = textOf(field, 'title') ?? '';
  const names = [...(heading === '' ? [] : [heading]), title === '' ? kind : title];
  if (kind === 'sshKey' && value?.kind === 'object') add(names, textOf(value, 'privateKey') ?? '', 'ssh_key');
  else add(names, textIn(value), kind === 'totp' ? 'totp' : null);
}

/** The text of a value: an e-mail address is wrapped in an object; other objects stay JSON. */
function textIn(value: JsonValue | undefined): string {
  if (value === undefined || value.kind === 'null') return '';
  if (value.kind === 'string') return value.value;
  if (value.kind === 'object') return textOf(value, 'email_address') ?? textOf(value, 'string') ?? value.text;
  return value.text;
}
