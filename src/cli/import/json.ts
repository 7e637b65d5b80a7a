/**
 * JSON as credentials, for JSON files and the secrets of Vault, and strict parsing for every JSON source: duplicate
 * keys are rejected, numbers keep their digits, and errors never quote the content. SOURCE: RFC 8259, section 4.
 */

import { UsageError } from '../../platform/errors.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { type ImportSource, Reader, typeByName } from './source.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The part of JSON that ECMAScript 2026 adds, which the compiler does not know yet. */
interface SourceTextJson {
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, of: { source: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}
const { parse, rawJSON, isRawJSON } = JSON as unknown as SourceTextJson;

/** Above the number of levels of any path. */
const MAX_DEPTH = 64;
/** The depth that `JSON.parse` and `JSON.stringify` handle without deep recursion. */
const MAX_FILE_DEPTH = 1000;
/** The maximum of one import. Larger collections are imported in parts. */
const MAX_VALUES = 1_000_000;
/**
 * Limit for a text in which a number cannot be kept without its source: V8 needs 100 times as long for these values.
 */
const MAX_VALUES_WITH_SOURCE = 100_000;

/** Numbers keep their digits. `name` is the name of the file, for errors. @throws UsageError */
export function parseJson(text: string, name: string): unknown {
  // ORDER: before parsing, whose cost and recursion depend on these counts.
  const { keys, values, depth, hasInexactNumber } = survey(text);
  if (depth > MAX_FILE_DEPTH) throw new UsageError(`${name}: is nested deeper than ${MAX_FILE_DEPTH} levels`);
  const maxValues = hasInexactNumber ? MAX_VALUES_WITH_SOURCE : MAX_VALUES;
  if (values > maxValues) {
    const what = hasInexactNumber ? ' and a number of another form than a program writes' : '';
    throw new UsageError(`${name}: has more than ${maxValues} values${what}; import it in parts`);
  }
  let value: unknown;
  try {
    value = hasInexactNumber ? parseWithSource(text) : JSON.parse(text);
  } catch (error) {
    const line = /line (\d+) column/.exec(String(error))?.[1];
    throw new UsageError(`${name}${line === undefined ? '' : `:${line}`}: is not strict JSON`);
  }
  if (keys > countMembers(value)) {
    throw new UsageError(`${name}: is not strict JSON: an object has the same key twice`);
  }
  return value;
}

function parseWithSource(text: string): unknown {
  return parse(text, (_key, each, { source }) => (typeof each === 'number' ? rawJSON(source) : each));
}

const BEGINS_NUMBER = /[-0-9]/;
const CONTINUES_NUMBER = /[-+.0-9eE]/;

interface Survey {
  /** The number of keys in the text. `JSON.parse` drops all duplicates but the last. */
  readonly keys: number;
  readonly values: number;
  readonly depth: number;
  /** Whether JavaScript would write a number differently, such as one with 20 digits, or `1.0`. */
  readonly hasInexactNumber: boolean;
}

function survey(text: string): Survey {
  let [keys, values, level, depth] = [0, 1, 0, 0];
  let hasInexactNumber = false;
  for (let at = 0; at < text.length && depth <= MAX_FILE_DEPTH && values <= MAX_VALUES; at++) {
    const character = text[at] ?? '';
    if (character === '"') at = endOfString(text, at);
    else if (character === ':') keys += 1;
    else if (character === ',') values += 1;
    else if (character === '[' || character === '{') {
      values += 1;
      level += 1;
      depth = Math.max(depth, level);
    } else if (character === ']' || character === '}') level -= 1;
    else if (BEGINS_NUMBER.test(character)) {
      const start = at;
      while (CONTINUES_NUMBER.test(text[at + 1] ?? '')) at += 1;
      const token = text.slice(start, at + 1);
      if (String(Number(token)) !== token) hasInexactNumber = true;
    }
  }
  return { keys, values, depth, hasInexactNumber };
}

/** The position of the closing quote, or the end of the text if there is none. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at += 1;
  return at;
}

/** The members of all objects in the value, which is not nested deeper than a text of JSON may be. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null || isRawJSON(value)) return 0;
  const members = Object.values(value);
  return members.reduce<number>((sum, member) => sum + countMembers(member), Array.isArray(value) ? 0 : members.length);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

export function textOf(object: JsonObject, name: string): string | null {
  const member = object[name];
  return typeof member === 'string' ? member : null;
}

export function objectOf(object: JsonObject, name: string): JsonObject | null {
  const member = object[name];
  return isObject(member) ? member : null;
}

export function objectsOf(object: JsonObject, name: string): readonly JsonObject[] {
  const member = object[name];
  return Array.isArray(member) ? member.filter(isObject) : [];
}

/** A string as it is, any other value as JSON, and an empty text for null or a missing member. */
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
