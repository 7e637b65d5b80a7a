/**
 * The fields of a resource. A field reads values of requests and files, writes those of replies, and has a form, from
 * which schemas, columns, flags and inputs follow. In memory null stands for a field that is not given.
 */
import { ruleBroken } from './errors.ts';

/** The broken rules, each as `field: rule`. A problem never contains a value of the request. */
export type Problems = string[];

/** A grammar of texts, which exists once. `parse` throws INVALID_REQUEST that names the field and the rule. */
export interface Grammar<T extends string> {
  readonly pattern: RegExp;
  readonly minLength: number;
  readonly maxLength: number;
  /** The noun for one text in messages. */
  readonly noun?: string;
  readonly description?: string;
  parse(text: string, field: string): T;
  /** Whether `outer` allows all that `inner` allows; without it only if they are equal. */
  covers?(outer: T, inner: T): boolean;
}

export type Form =
  | { readonly kind: 'text'; readonly grammar: Grammar<string> }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number; readonly unit: 'seconds' | null }
  | { readonly kind: 'choice'; readonly words: readonly string[]; readonly noun: string | null }
  /**
   * The value is milliseconds since 1970 in memory, and a timestamp in UTC in requests and replies. `isFuture`: it must
   * be in the future when it is written, which the decision checks.
   */
  | { readonly kind: 'time'; readonly isFuture: boolean }
  /** `max` is null for any number of items. No two items are equal in memory. */
  | { readonly kind: 'list'; readonly item: Form; readonly min: number; readonly max: number | null }
  | { readonly kind: 'record'; readonly fields: Fields; readonly title: string; readonly needsOne: boolean };

/**
 * Requests never have a field that is `set by the server`. A field with a value `by default` is optional in requests,
 * and every reply has it.
 */
type Presence = 'required' | 'optional' | 'by default' | 'set by the server';

/** The texts about a field that people read. */
interface FieldTexts {
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
  /** The number of the migration that adds the column, if it is not the first. Only an optional field has one. */
  readonly since?: number;
}

/** WHY only a mark: where a function expects a wider field, TypeScript would infer the types of that one. */
interface FieldMark {
  readonly isField: true;
}
export type Fields = Readonly<Record<string, FieldMark>>;

/** `V` is the type of the value in memory, `I` in a request, and `R` in a reply. */
export interface Field<V, I, R, P extends Presence, W extends string | undefined> extends FieldTexts, FieldMark {
  readonly form: Form;
  readonly presence: P;
  /** The name in requests, replies and files, if that is not the name of the property. */
  readonly wire: W;
  readonly byDefault: I | undefined;
  /** A valid value of a request, which tests use. */
  readonly example: I;
  /** Returns undefined after it has added one or more problems. */
  read(given: unknown, where: string, problems: Problems): V | undefined;
  write(value: V): R;
  /** Whether a grant with the value `outer` allows all that one with `inner` allows. */
  covers(outer: V, inner: V): boolean;
}

export type AnyField = Field<unknown, unknown, unknown, Presence, string | undefined>;

type In<T> = T extends { readonly example: infer I } ? I : never;
type Out<T> = T extends { write(value: never): infer R } ? R : never;
type Memory<T> = T extends { read(given: unknown, where: string, problems: Problems): infer V }
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
  { [K in Exclude<keyof F, NamesOf<F, 'optional'>> as WireName<F[K], K>]: Out<F[K]> } & {
    [K in NamesOf<F, 'optional'> as WireName<F[K], K>]?: Out<F[K]>;
  }
>;

interface Options<I, W> extends FieldTexts {
  readonly wire?: W;
  readonly example: I;
}

function field<V, I, R, W extends string | undefined>(
  form: Form,
  options: Options<I, W>,
  convert: Pick<Field<V, I, R, 'required', W>, 'read' | 'write' | 'covers'>,
): Field<V, I, R, 'required', W> {
  const wire = options.wire as W;
  return { byDefault: undefined, ...options, ...convert, isField: true, form, presence: 'required', wire };
}

type With<T, P extends Presence> =
  T extends Field<infer V, infer I, infer R, Presence, infer W> ? Field<V, I, R, P, W> : never;

/** The value is null in memory where the field is not given. */
export function optional<T extends FieldMark>(of: T): With<T, 'optional'> {
  return { ...of, presence: 'optional' } as unknown as With<T, 'optional'>;
}

export function byDefault<T extends FieldMark>(value: In<T>, of: T): With<T, 'by default'> {
  return { ...of, presence: 'by default', byDefault: value } as unknown as With<T, 'by default'>;
}

export function setByServer<T extends FieldMark>(of: T): With<T, 'set by the server'> {
  return { ...of, presence: 'set by the server' } as unknown as With<T, 'set by the server'>;
}

export function text<T extends string, const W extends string | undefined = undefined>(
  grammar: Grammar<T>,
  options: Options<string, W>,
): Field<T, string, string, 'required', W> {
  return field<T, string, string, W>({ kind: 'text', grammar }, options, {
    read: (given, where, problems) => readText(grammar, given, where, problems),
    write: (value) => value,
    covers: grammar.covers ?? Object.is,
  });
}

function readText<T extends string>(grammar: Grammar<T>, given: unknown, where: string, problems: Problems) {
  if (typeof given !== 'string') {
    problems.push(`${where}: must be a string`);
    return undefined;
  }
  let parsed: T | undefined;
  const problem = ruleBroken(() => {
    parsed = grammar.parse(given, where);
  });
  if (problem !== null) problems.push(problem);
  return parsed;
}

export function integer<T extends number = number, const W extends string | undefined = undefined>(
  limits: { readonly min: number; readonly max: number; readonly unit?: 'seconds' },
  options: Options<number, W>,
): Field<T, number, number, 'required', W> {
  const { min, max, unit = null } = limits;
  return field<T, number, number, W>({ kind: 'integer', min, max, unit }, options, {
    read(given, where, problems) {
      if (typeof given === 'number' && Number.isInteger(given) && given >= min && given <= max) return given as T;
      problems.push(`${where}: must be a whole number${unit === null ? '' : ` of ${unit}`}, ${min} to ${max}`);
      return undefined;
    },
    write: (value) => value,
    covers: (outer, inner) => inner <= outer,
  });
}

export function oneOf<T extends string, const W extends string | undefined = undefined>(
  words: readonly T[],
  options: Options<T, W> & { readonly noun?: string },
): Field<T, T, T, 'required', W> {
  const { noun = null, ...others } = options;
  return field<T, T, T, W>({ kind: 'choice', words, noun }, others, {
    read: (given, where, problems) => readWord(words, given, where, problems),
    write: (value) => value,
    covers: Object.is,
  });
}

function readWord<T extends string>(words: readonly T[], given: unknown, where: string, problems: Problems) {
  const found = words.find((word) => word === given);
  if (found === undefined) problems.push(`${where}: must be one of ${words.join(', ')}`);
  return found;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;

export function time<const W extends string | undefined = undefined>(
  options: Options<string, W>,
  { isFuture = false }: { readonly isFuture?: boolean } = {},
): Field<number, string, string, 'required', W> {
  return field<number, string, string, W>({ kind: 'time', isFuture }, options, {
    read(given, where, problems) {
      const at = typeof given === 'string' && TIMESTAMP.test(given) ? Date.parse(given) : Number.NaN;
      // WHY compared: February 30 is a day of March.
      if (!Number.isNaN(at) && new Date(at).toISOString().startsWith(String(given).slice(0, 19))) return at;
      problems.push(`${where}: must be a time in UTC such as 2026-01-31T09:30:00Z`);
      return undefined;
    },
    write: toTimestamp,
    covers: (outer, inner) => inner <= outer,
  });
}

/** The range of ISO 8601 timestamps with four digits for the year. */
const LAST_TIME = Date.UTC(10_000, 0, 1) - 1;
let lastAt = Number.NaN;
let lastTimestamp = '';

/**
 * Caches the last timestamp, because the replies of one batch contain the same time. Lists show rows unchecked, so a
 * time that was altered outside can be out of range: the nearest one is shown.
 */
export function toTimestamp(at: number): string {
  if (at !== lastAt) {
    lastTimestamp = new Date(Math.min(Math.max(at, 0), LAST_TIME)).toISOString();
    lastAt = at;
  }
  return lastTimestamp;
}

interface ListLimits {
  readonly min: number;
  readonly max?: number;
}

/** The items are texts, several equal ones of which are one item in memory. */
export function list<T extends FieldMark, const W extends string | undefined = undefined>(
  of: T & (Memory<T> extends string ? unknown : never),
  limits: ListLimits,
  options: Options<In<T>[], W>,
): Field<readonly Memory<T>[], In<T>[], Out<T>[], 'required', W> {
  const item = of as unknown as AnyField;
  const { min, max = null } = limits;
  const count = max === null ? `${min} or more` : `${min} to ${max}`;
  return field<readonly Memory<T>[], In<T>[], Out<T>[], W>({ kind: 'list', item: item.form, min, max }, options, {
    read(given, where, problems) {
      if (!Array.isArray(given) || given.length < min || given.length > (max ?? Number.POSITIVE_INFINITY)) {
        problems.push(`${where}: must be an array of ${count} ${nounOf(item.form)}s`);
        return undefined;
      }
      const items = given.map((each: unknown, index) => item.read(each, `${where}[${index}]`, problems));
      return items.some((each) => each === undefined) ? undefined : ([...new Set(items)] as Memory<T>[]);
    },
    write: (values) => values.map((value) => item.write(value) as Out<T>),
    covers: (outer, inner) => inner.every((value) => outer.some((wider) => item.covers(wider, value))),
  });
}

/** The noun for one value in messages. */
export function nounOf(form: Form): string {
  if (form.kind === 'text') return form.grammar.noun ?? 'text';
  return form.kind === 'choice' ? (form.noun ?? 'word') : 'value';
}

interface RecordRules<V> {
  readonly title: string;
  /** Whether one or more of the fields must be given. */
  readonly needsOne?: boolean;
  /** The rule across fields that the record breaks, as `field: rule` or `rule`; null if it breaks none. */
  check?(record: V): string | null;
  /** Whether `outer` allows all that `inner` allows; without it, whether each of its fields does. */
  covers?(outer: V, inner: V): boolean;
}

export function record<F extends Fields, const W extends string | undefined = undefined>(
  fields: F,
  rules: RecordRules<ValueOf<F>>,
  options: Options<InputOf<F>, W>,
): Field<ValueOf<F>, InputOf<F>, ReplyOf<F>, 'required', W> {
  const { title, needsOne = false } = rules;
  return field<ValueOf<F>, InputOf<F>, ReplyOf<F>, W>({ kind: 'record', fields, title, needsOne }, options, {
    read(given, where, problems) {
      const names = wireNames(fields);
      if (!isRecord(given)) {
        const content = needsOne ? `one or more of ${names.join(', ')}` : membersOf(fields);
        problems.push(`${where}: must be an object with ${content}`);
        return undefined;
      }
      if (needsOne && !names.some((name) => given[name] !== undefined)) {
        problems.push(`${where}: must have one or more of ${names.join(', ')}`);
        return undefined;
      }
      const before = problems.length;
      const found = readFields(fields, given, `${where}.`, problems);
      const broken = problems.length === before ? (rules.check?.(found) ?? null) : null;
      if (broken !== null) problems.push(`${where}.${broken}`);
      return problems.length === before ? found : undefined;
    },
    write: (value) => writeFields(fields, value),
    covers: rules.covers ?? ((outer, inner) => fieldsCover(fields, outer, inner)),
  });
}

function fieldsCover<F extends Fields>(fields: F, outer: ValueOf<F>, inner: ValueOf<F>): boolean {
  return entriesOf(fields).every(({ property, field: each }) => covers(each, outer[property], inner[property]));
}

/** Whether `outer` allows all that `inner` allows. An optional field that is not given allows everything. */
export function covers(each: AnyField, outer: unknown, inner: unknown): boolean {
  return outer === null || (inner !== null && each.covers(outer, inner));
}

function membersOf(fields: Fields): string {
  const required = entriesOf(fields).filter(({ field: { presence } }) => presence === 'required');
  const names = required.map(({ wire }) => wire);
  const others = wireNames(fields).filter((name) => !names.includes(name));
  return `${names.join(', ')}${others.length === 0 ? '' : `, and optionally ${others.join(', ')}`}`;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields with their names in memory and in requests. */
export function entriesOf(fields: Fields): { property: string; wire: string; field: AnyField }[] {
  return Object.entries(fields as Readonly<Record<string, AnyField>>).map(([property, each]) => ({
    property,
    wire: each.wire ?? property,
    field: each,
  }));
}

/** The names of the fields that requests have. */
export function wireNames(fields: Fields): string[] {
  const inRequests = entriesOf(fields).filter(({ field: { presence } }) => presence !== 'set by the server');
  return inRequests.map(({ wire }) => wire);
}

/** Adds a problem for each field that is unknown, missing or invalid. The result has no meaning if it has added one. */
export function readFields<F extends Fields>(
  fields: F,
  given: Readonly<Record<string, unknown>>,
  prefix: string,
  problems: Problems,
): ValueOf<F> {
  const names = wireNames(fields);
  for (const name of Object.keys(given)) {
    if (!names.includes(name) && given[name] !== undefined) {
      const where = prefix === '' ? 'body' : prefix.slice(0, -1);
      problems.push(`${where}: has an unknown field; the allowed fields are ${names.join(', ')}`);
    }
  }
  const values: Record<string, unknown> = {};
  for (const { property, wire, field: each } of entriesOf(fields)) {
    if (each.presence === 'set by the server') continue;
    const value = given[wire] === undefined ? each.byDefault : given[wire];
    if (value !== undefined) values[property] = each.read(value, prefix + wire, problems);
    else if (each.presence === 'optional') values[property] = null;
    else problems.push(`${prefix}${wire}: is required`);
  }
  return values as ValueOf<F>;
}

/** Skips the optional fields that are null. */
export function writeFields<F extends Fields>(fields: F, values: ValueOf<F>): ReplyOf<F> {
  const written: Record<string, unknown> = {};
  for (const { property, wire, field: each } of entriesOf(fields)) {
    const value = values[property];
    if (value !== null && value !== undefined) written[wire] = each.write(value);
  }
  return written as ReplyOf<F>;
}
