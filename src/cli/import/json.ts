/**
 * JSON as credentials, for JSON files and the secrets of Vault, and strict parsing for every JSON source: duplicate
 * keys are rejected, numbers keep their digits, and errors never quote the content. SOURCE: RFC 8259, section 4.
 */
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import { type ImportSource, Reader, typeByName } from './item.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** What ECMAScript 2026 adds to JSON, which the compiler does not know yet. */
interface SourceTextJson {
  /** `source`: a primitive value as it is written. */
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, of: { source: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}
const { parse, rawJSON, isRawJSON } = JSON as unknown as SourceTextJson;

/** More levels than a path can have. */
const MAX_DEPTH = 64;
const COLON = /[ \t\r\n]*:/y;

/** Numbers become `JSON.rawJSON`. `name` is the name of the file, for errors. @throws UsageError */
export function parseJson(text: string, name: string): unknown {
  // The last call of the reviver is for the whole value, which is not a member.
  let members = -1;
  let value: unknown;
  try {
    value = parse(text, function (_key, each, { source }) {
      if (!Array.isArray(this)) members += 1;
      return typeof each === 'number' ? rawJSON(source) : each;
    });
  } catch (error) {
    const line = /line (\d+) column/.exec(String(error))?.[1];
    throw new UsageError(`${name}${line === undefined ? '' : `:${line}`}: is not strict JSON`);
  }
  if (countKeys(text) > members) throw new UsageError(`${name}: is not strict JSON: an object has the same key twice`);
  return value;
}

/** The keys in a valid JSON text, of which `JSON.parse` drops all duplicates but the last. */
function countKeys(text: string): number {
  let keys = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
    at += 1;
    COLON.lastIndex = at;
    if (COLON.test(text)) keys += 1;
  }
  return keys;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** A member that is a string; null otherwise. */
export function textOf(object: JsonObject, name: string): string | null {
  const member = object[name];
  return typeof member === 'string' ? member : null;
}

/** A member that is an object; null otherwise. */
export function objectOf(object: JsonObject, name: string): JsonObject | null {
  const member = object[name];
  return isObject(member) ? member : null;
}

/** The objects in a member that is an array; empty otherwise. */
export function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const member = object[name];
  return Array.isArray(member) ? member.filter(isObject) : [];
}

/** A string as it is, anything else as JSON, and empty for null or a missing member. */
export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '').replace(/^""$/, '');
}

/** @throws UsageError when the text is not strict JSON, or not an object */
export function readJsonFile(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  if (!isObject(root)) throw new UsageError(`${name}: must be an object, whose keys become the paths`);
  const reader = new Reader();
  addJson(reader, [], root, name);
  return reader;
}

/** Members of objects add a segment; numbers and booleans are stored as written; an array is one value, its JSON. */
export function addJson(reader: Reader, names: readonly string[], value: unknown, where: string): void {
  if (value === null) reader.skip(where, 'it is null', 'empty');
  else if (isObject(value) && names.length < MAX_DEPTH) {
    const members = Object.entries(value);
    if (members.length === 0) reader.skip(where, 'it is an empty object', 'empty');
    for (const [name, member] of members) addJson(reader, [...names, name], member, `${where} › ${name}`);
  } else {
    const type = typeByName(names.at(-1) ?? '');
    reader.add({ names, value: new Secret(valueText(value)), type, description: '', where });
  }
}
