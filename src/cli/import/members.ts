/** Nested members as names and texts, by one rule for JSON files and the fields of Vault's secrets. */
import { Secret } from '../../core/secret.ts';
import { type Draft, type Reader, typeByName } from './item.ts';
import type { JsonObject, JsonValue } from './json.ts';

type Source = Pick<Draft, 'description'> & {
  /** In words, of a value in that line. */
  where(names: readonly string[], line: number): string;
};

/** Objects go on with a segment; what is no text is stored as it was written; an array is one value, its JSON. */
export function addMembers(reader: Reader, names: readonly string[], object: JsonObject, source: Source): void {
  for (const [name, value] of object.members) {
    const all = [...names, name];
    if (value.kind === 'object' && value.members.size > 0) addMembers(reader, all, value, source);
    else addValue(reader, all, value, source);
  }
}

/** One value under these names. */
export function addValue(reader: Reader, names: readonly string[], value: JsonValue, source: Source): void {
  const where = source.where(names, value.line);
  if (value.kind === 'null') reader.leaveOut(where, 'it is null', 'empty');
  else if (value.kind === 'object' && value.members.size === 0)
    reader.leaveOut(where, 'it is an empty object', 'empty');
  else {
    const text = value.kind === 'string' ? value.value : value.text;
    const { description } = source;
    reader.add({ names, value: new Secret(text), type: typeByName(names.at(-1) ?? ''), description, where });
  }
}

/** The text of a member, where it is a text; null for anything else. */
export function textOf(object: JsonObject, name: string): string | null {
  const member = object.members.get(name);
  return member?.kind === 'string' ? member.value : null;
}

export function objectOf(object: JsonObject, name: string): JsonObject | null {
  const member = object.members.get(name);
  return member?.kind === 'object' ? member : null;
}

/** The objects of an array; none where it is no array. */
export function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const member = object.members.get(name);
  return member?.kind === 'array' ? member.items.filter((item) => item.kind === 'object') : [];
}
