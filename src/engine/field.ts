/**
 * The fields of a resource, a request or a reply. A field reads the values of requests and files, and writes the values
 * of replies. Schemas, columns, flags and inputs follow from its form. In memory, null stands for a field that is not
 * given. `kinds.ts` makes the fields.
 */

import { ApiError } from './errors.ts';

/** The broken rules, each as `field: rule`. A problem never contains a value of the request. */
export type Problems = string[];

/** A grammar of texts, declared once. `parse` throws INVALID_REQUEST that names the field and the rule. */
export interface Grammar<T extends string> {
  /** Null for any characters, also those that a database cannot store. */
  readonly pattern: RegExp | null;
  readonly minLength: number;
  readonly maxLength: number;
  /** The noun for one text in messages. */
  readonly noun?: string;
  readonly description?: string;
  /** Additional keywords of JSON Schema. */
  readonly annotations?: { readonly contentEncoding: 'base64' } | { readonly format: 'uuid' };
  parse(text: string, field: string): T;
  /** Returns the text that `parse` accepts for the value. Without it, that is the value itself. */
  format?(value: T): string;
  /** Whether `outer` allows everything that `inner` allows. Without it, a value covers only itself. */
  covers?(outer: T, inner: T): boolean;
}

export type PatternGrammar<T extends string> = Grammar<T> & { readonly pattern: RegExp };

export type Form =
  /** A `grammar` of null allows any text; `limits` are the keywords that its schema has. */
  | { readonly kind: 'text'; readonly grammar: Grammar<string> | null; readonly limits: object }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number; readonly unit: 'seconds' | null }
  | { readonly kind: 'choice'; readonly words: readonly string[]; readonly noun: string | null }
  /** The value is milliseconds since 1970 in memory, and a timestamp in UTC in requests and replies. */
  | { readonly kind: 'time' }
  /** `max` is null for any number of items. No two items are equal in memory. */
  | { readonly kind: 'list'; readonly item: Form; readonly min: number; readonly max: number | null }
  | {
      readonly kind: 'record';
      readonly fields: Fields;
      readonly title: string;
      /** The names of its schemas in the OpenAPI document. */
      readonly names: { readonly request: string; readonly reply: string };
      readonly needsOne: boolean;
      /** Whether unknown fields are ignored. */
      readonly isOpen: boolean;
      /** The rule across fields that a value in memory breaks, without the name of the record. */
      broken(value: unknown): string | null;
    }
  /** Records with different fields, by the word in their field `kind`. */
  | { readonly kind: 'kinds'; readonly of: Readonly<Record<string, Fields>>; readonly title: string }
  /** An object with names that match the pattern, and texts, or texts and integers, as values. */
  | {
      readonly kind: 'map';
      readonly name: RegExp;
      readonly max: number | null;
      readonly maxTextLength: number;
      readonly textPattern?: RegExp;
      readonly maxInteger: number | null;
      readonly title: string;
      isScalar(value: unknown): boolean;
    }
  | { readonly kind: 'bytes'; readonly min: number; readonly max: number };

/**
 * Requests never contain a field that is `set by the server`. Neither requests nor replies contain an `internal` field.
 * A field with a value `by default` is optional in requests, and every reply contains it.
 */
type Presence = 'required' | 'optional' | 'by default' | 'set by the server' | 'internal';

/** The texts about a field that people read. */
export interface FieldTexts {
  /** The description in the OpenAPI document. */
  readonly description?: string;
  /** The label of its input in the console. */
  readonly label?: string;
  /** The flag of the CLI, if it is not the name in requests with hyphens. */
  readonly flag?: string;
  readonly placeholder?: string;
  /** The help text of the flag, without the default. */
  readonly help?: string;
  /** The meaning of an empty input in the console. */
  readonly empty?: string;
}

/** WHY only a mark: where a function expects a wider field, TypeScript would infer the types of the wider field. */
export interface FieldMark {
  readonly isField: true;
}
export type Fields = Readonly<Record<string, FieldMark>>;
/** WHY only required fields: a field with two presences would be read in one way and stored in another. */
interface RequiredMark extends FieldMark {
  readonly presence: 'required';
}

/** `V` is the type of the value in memory, `I` in a request, and `R` in a reply. */
export interface Field<V, I, R, P extends Presence, W extends string | undefined> extends FieldTexts, FieldMark {
  readonly form: Form;
  readonly presence: P;
  /** The name in requests, replies and files, if it differs from the name of the property. */
  readonly wire: W;
  readonly byDefault: I | undefined;
  /** Where the value may be null. The value of an optional field may always be null in memory. */
  readonly nulls: 'nowhere' | 'in memory' | 'everywhere';
  /** A valid value of a request, which tests use. */
  readonly example: I | undefined;
  /** The number of the migration that adds the column. */
  readonly since: number;
  /** Returns undefined after it has added one or more problems. */
  read(given: unknown, where: string, problems: Problems): V | undefined;
  write(value: V): R;
  /** Reads a value of a reply. WHY without rules: a newer server may write values that this code does not know. */
  restore(reply: R): V;
  /** Whether a grant with the value `outer` allows everything that a grant with `inner` allows. */
  covers(outer: V, inner: V): boolean;
}

export type AnyField = Field<unknown, unknown, unknown, Presence, string | undefined>;

export type In<T> = T extends { readonly example: infer I } ? Exclude<I, undefined> : never;
export type Out<T> = T extends { write(value: never): infer R } ? R : never;
export type Memory<T> = T extends { read(given: unknown, where: string, problems: Problems): infer V }
  ? Exclude<V, undefined>
  : never;
type WireName<T, K> = T extends { readonly wire: infer W extends string } ? W : K & string;
type NamesOf<F extends Fields, P extends Presence> = {
  [K in keyof F]: F[K] extends { readonly presence: P } ? K : never;
}[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };

/** The fields in memory. */
export type ValueOf<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends { readonly presence: 'optional' } ? Memory<F[K]> | null : Memory<F[K]>;
};

/** The fields of a request. */
export type InputOf<F extends Fields> = Flat<
  { [K in NamesOf<F, 'required'> as WireName<F[K], K>]: In<F[K]> } & {
    [K in NamesOf<F, 'optional' | 'by default'> as WireName<F[K], K>]?: In<F[K]> | undefined;
  }
>;

/** The fields of a reply. */
export type ReplyOf<F extends Fields> = Flat<
  { [K in NamesOf<F, 'required' | 'by default' | 'set by the server'> as WireName<F[K], K>]: Out<F[K]> } & {
    [K in NamesOf<F, 'optional'> as WireName<F[K], K>]?: Out<F[K]>;
  }
>;

type With<T, P extends Presence> =
  T extends Field<infer V, infer I, infer R, Presence, infer W> ? Field<V, I, R, P, W> : never;

/**
 * Makes the field optional. Its value in memory is null if it is not given. `since` is the number of the migration that
 * adds its column.
 */
export function optional<T extends RequiredMark>(of: T, { since = 1 } = {}): With<T, 'optional'> {
  return { ...of, presence: 'optional', since } as unknown as With<T, 'optional'>;
}

export function byDefault<T extends RequiredMark>(value: In<T>, of: T): With<T, 'by default'> {
  return { ...of, presence: 'by default', byDefault: value } as unknown as With<T, 'by default'>;
}

export function setByServer<T extends RequiredMark>(of: T): With<T, 'set by the server'> {
  return { ...of, presence: 'set by the server' } as unknown as With<T, 'set by the server'>;
}

/** Marks a field that the server stores and never shows. */
export function internal<T extends RequiredMark>(of: T): With<T, 'internal'> {
  return { ...of, presence: 'internal' } as unknown as With<T, 'internal'>;
}

type Nullable<T> =
  T extends Field<infer V, infer I, infer R, infer P, infer W> ? Field<V | null, I | null, R | null, P, W> : never;

/** Allows null in memory, requests and replies. */
export function nullable<T extends FieldMark>(of: T): Nullable<T> {
  const inner = of as unknown as AnyField;
  const read = (given: unknown, where: string, problems: Problems): unknown => {
    const own: Problems = [];
    const value = given === null ? null : inner.read(given, where, own);
    problems.push(...own.map((problem) => (problem.startsWith(`${where}: `) ? `${problem}, or null` : problem)));
    return value;
  };
  const write = (value: unknown): unknown => (value === null ? null : inner.write(value));
  const restore = (reply: unknown): unknown => (reply === null ? null : inner.restore(reply));
  return { ...inner, nulls: 'everywhere', read, write, restore } as unknown as Nullable<T>;
}

/** Stores an empty list as null, which the MAC of a row does not cover. */
export function nullIfEmpty<T extends FieldMark>(of: T): NullInMemory<T> {
  const inner = of as unknown as AnyField;
  const write = (value: unknown): unknown => inner.write(value ?? []);
  const restore = (reply: unknown): unknown =>
    Array.isArray(reply) && reply.length === 0 ? null : inner.restore(reply);
  return { ...inner, nulls: 'in memory', write, restore } as unknown as NullInMemory<T>;
}

type NullInMemory<T> =
  T extends Field<infer V, infer I, infer R, infer P, infer W> ? Field<V | null, I, R, P, W> : never;

/** Whether `outer` allows everything that `inner` allows. An optional field that is not given allows everything. */
export function covers(each: AnyField, outer: unknown, inner: unknown): boolean {
  return outer === null || (inner !== null && each.covers(outer, inner));
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface FieldEntry {
  /** The name in memory. */
  readonly property: string;
  /** The name in requests, replies and files. */
  readonly wire: string;
  readonly field: AnyField;
}

const entries = new WeakMap<Fields, readonly FieldEntry[]>();

export function entriesOf(fields: Fields): readonly FieldEntry[] {
  const known = entries.get(fields);
  if (known !== undefined) return known;
  const made = Object.entries(fields as Readonly<Record<string, AnyField>>).map(
    ([property, each]): FieldEntry => ({ property, wire: each.wire ?? property, field: each }),
  );
  entries.set(fields, made);
  return made;
}

export function isInRequests({ presence }: AnyField): boolean {
  return presence !== 'set by the server' && presence !== 'internal';
}

/** The names of the fields that requests contain. */
export function wireNames(fields: Fields): string[] {
  return entriesOf(fields).flatMap(({ wire, field: each }) => (isInRequests(each) ? [wire] : []));
}

/** @throws INVALID_REQUEST with the first problem of the value */
export function parseField<T extends FieldMark>(of: T, given: unknown, where: string): Memory<T> {
  const problems: Problems = [];
  const value = (of as unknown as AnyField).read(given, where, problems);
  if (problems.length > 0) throw new ApiError('INVALID_REQUEST', problems[0] ?? where);
  return value as Memory<T>;
}

/**
 * Adds a problem for each field that is unknown, unless the record is open, and for each that is missing or invalid. If
 * it adds one, the result has no meaning.
 */
export function readFields<F extends Fields>(
  fields: F,
  given: Readonly<Record<string, unknown>>,
  prefix: string,
  problems: Problems,
  isOpen = false,
): ValueOf<F> {
  const names = wireNames(fields);
  for (const name of isOpen ? [] : Object.keys(given)) {
    if (!names.includes(name) && given[name] !== undefined) {
      const where = prefix === '' ? 'body' : prefix.slice(0, -1);
      const known = names.length === 0 ? 'no fields are allowed' : `the allowed fields are ${names.join(', ')}`;
      problems.push(`${where}: has an unknown field; ${known}`);
    }
  }
  const values: Record<string, unknown> = {};
  for (const { property, wire, field: each } of entriesOf(fields)) {
    if (!isInRequests(each)) continue;
    const value = given[wire] === undefined ? each.byDefault : given[wire];
    if (value !== undefined) values[property] = each.read(value, prefix + wire, problems);
    else if (each.presence === 'optional') values[property] = null;
    else problems.push(`${prefix}${wire}: is required`);
  }
  return values as ValueOf<F>;
}

/** Writes the fields, except internal ones and optional ones that are null. */
export function writeFields<F extends Fields>(fields: F, values: ValueOf<F>): ReplyOf<F> {
  const written: Record<string, unknown> = {};
  for (const { property, wire, field: each } of entriesOf(fields)) {
    const value: unknown = values[property];
    const isShown = each.presence !== 'internal' && (value !== null || each.presence !== 'optional');
    if (isShown && value !== undefined) written[wire] = each.write(value);
  }
  return written as ReplyOf<F>;
}

/** Restores the shown fields of a reply. A field that an older server does not send has its default, or null. */
export function restoreFields(fields: Fields, reply: Readonly<Record<string, unknown>>): object {
  const shown = entriesOf(fields).filter(({ field: each }) => each.presence !== 'internal');
  return Object.fromEntries(
    shown.map(({ property, wire, field: each }) => {
      const value = reply[wire] === undefined ? each.byDefault : reply[wire];
      return [property, value === undefined || value === null ? null : each.restore(value)];
    }),
  );
}
