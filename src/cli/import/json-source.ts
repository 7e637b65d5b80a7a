/**
 * Nested JSON objects as credentials: the keys are the segments of the path. One rule for JSON files and the secrets of
 * Vault.
 */
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { type Draft, type ImportSource, Reader, typeByName } from './item.ts';
import { type JsonObject, type JsonValue, parseJson } from './json.ts';

/** @throws UsageError when the text is not strict JSON, or not an object */
export function readJsonFile(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  if (root.kind !== 'object') throw new UsageError(`${name}: must be an object, whose keys become the paths`);
  const reader = new Reader();
  addMembers(reader, [], root, { description: '', where: (_names, line) => `${name}:${line}` });
  return reader;
}

type Source = Pick<Draft, 'description'> & {
  /** The location of a value, for the user. */
  where(names: readonly string[], line: number): string;
};

/** Objects add a segment; numbers and booleans are stored as written; an array is one value, its JSON. */
export function addMembers(reader: Reader, names: readonly string[], object: JsonObject, source: Source): void {
  for (const [name, value] of object.members) {
    const all = [...names, name];
    if (value.kind === 'object' && value.members.size > 0) addMembers(reader, all, value, source);
    else addValue(reader, all, value, source);
  }
}

/** Adds one value under these names. */
export function addValue(reader: Reader, names: readonly string[], value: JsonValue, source: Source): void {
  const where = source.where(names, value.line);
  if (value.kind === 'null') reader.skip(where, 'it is null', 'empty');
  else if (value.kind === 'object' && value.members.size === 0) reader.skip(where, 'it is an empty object', 'empty');
  else {
    const text = value.kind === 'string' ? value.value : value.text;
    const { description } = source;
    reader.add({ names, value: new Secret(text), type: typeByName(names.at(-1) ?? ''), description, where });
  }
}
