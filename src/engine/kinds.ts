/** The kinds of fields: how each reads values of requests, writes those of replies, and what a grant with it covers. */
import { ruleBroken } from './errors.ts';
import {
  type AnyField,
  covers,
  entriesOf,
  type Field,
  type FieldMark,
  type Fields,
  type FieldTexts,
  type Form,
  type Grammar,
  type In,
  type InputOf,
  isRecord,
  type Memory,
  type Out,
  type Problems,
  type ReplyOf,
  readFields,
  restoreFields,
  type ValueOf,
  wireNames,
  writeFields,
} from './field.ts';
import { readTimestamp, toTimestamp } from './timestamp.ts';

interface Options<I, W> extends FieldTexts {
  readonly wire?: W;
  readonly example?: I;
}

function field<V, I, R, W extends string | undefined>(
  form: Form,
  options: Options<I, W>,
  convert: Pick<Field<V, I, R, 'required', W>, 'read' | 'write' | 'restore' | 'covers'>,
): Field<V, I, R, 'required', W> {
  const wire = options.wire as W;
  return {
    byDefault: undefined,
    example: undefined,
    since: 1,
    ...options,
    ...convert,
    isField: true,
    nulls: 'nowhere',
    form,
    presence: 'required',
    wire,
  };
}

export function text<T extends string, const W extends string | undefined = undefined>(
  grammar: Grammar<T>,
  options: Options<string, W> = {},
): Field<T, string, string, 'required', W> {
  return field<T, string, string, W>({ kind: 'text', grammar }, options, {
    read: (given, where, problems) => readText(grammar, given, where, problems),
    write: grammar.format ?? ((value) => value),
    restore: (reply) => (grammar.format === undefined ? (reply as T) : grammar.parse(reply, 'reply')),
    covers: grammar.covers ?? Object.is,
  });
}

/** A text without a grammar, for fields that only the server writes. */
export function anyText<const W extends string | undefined = undefined>(
  options: Options<string, W> = {},
): Field<string, string, string, 'required', W> {
  return field<string, string, string, W>({ kind: 'text', grammar: null }, options, {
    read: readString,
    write: (value) => value,
    restore: (reply) => reply,
    covers: Object.is,
  });
}

export function boolean<const W extends string | undefined = undefined>(
  options: Options<boolean, W> = {},
): Field<boolean, boolean, boolean, 'required', W> {
  return field<boolean, boolean, boolean, W>({ kind: 'boolean' }, options, {
    read(given, where, problems) {
      if (typeof given !== 'boolean') problems.push(`${where}: must be a boolean`);
      return typeof given === 'boolean' ? given : undefined;
    },
    write: (value) => value,
    restore: (reply) => reply,
    covers: (outer, inner) => outer || !inner,
  });
}

function readString(given: unknown, where: string, problems: Problems): string | undefined {
  if (typeof given === 'string') return given;
  problems.push(`${where}: must be a string`);
  return undefined;
}

function readText<T extends string>(grammar: Grammar<T>, given: unknown, where: string, problems: Problems) {
  const text = readString(given, where, problems);
  if (text === undefined) return undefined;
  let parsed: T | undefined;
  const problem = ruleBroken(() => {
    parsed = grammar.parse(text, where);
  });
  if (problem !== null) problems.push(problem);
  return parsed;
}

export function integer<T extends number = number, const W extends string | undefined = undefined>(
  limits: { readonly min: number; readonly max: number; readonly unit?: 'seconds' },
  options: Options<number, W> = {},
): Field<T, number, number, 'required', W> {
  const { min, max, unit = null } = limits;
  return field<T, number, number, W>({ kind: 'integer', min, max, unit }, options, {
    read(given, where, problems) {
      if (typeof given === 'number' && Number.isInteger(given) && given >= min && given <= max) return given as T;
      problems.push(`${where}: must be a whole number${unit === null ? '' : ` of ${unit}`}, ${min} to ${max}`);
      return undefined;
    },
    write: (value) => value,
    restore: (reply) => reply as T,
    covers: (outer, inner) => inner <= outer,
  });
}

export function oneOf<T extends string, const W extends string | undefined = undefined>(
  words: readonly T[],
  options: Options<T, W> & { readonly noun?: string } = {},
): Field<T, T, T, 'required', W> {
  const { noun = null, ...others } = options;
  return field<T, T, T, W>({ kind: 'choice', words, noun }, others, {
    read: (given, where, problems) => readWord(words, given, where, problems),
    write: (value) => value,
    restore: (reply) => reply,
    covers: Object.is,
  });
}

function readWord<T extends string>(words: readonly T[], given: unknown, where: string, problems: Problems) {
  const found = words.find((word) => word === given);
  if (found === undefined) problems.push(`${where}: must be one of ${words.join(', ')}`);
  return found;
}

export function time<const W extends string | undefined = undefined>(
  options: Options<string, W> = {},
): Field<number, string, string, 'required', W> {
  return field<number, string, string, W>({ kind: 'time' }, options, {
    read(given, where, problems) {
      const at = readTimestamp(given);
      if (at !== null) return at;
      problems.push(`${where}: must be a time in UTC such as 2026-01-31T09:30:00Z`);
      return undefined;
    },
    write: toTimestamp,
    restore: Date.parse,
    covers: (outer, inner) => inner <= outer,
  });
}

/** A whole number, 0 or more. */
export function count<const W extends string | undefined = undefined>(
  options: Options<number, W> = {},
): Field<number, number, number, 'required', W> {
  return integer<number, W>({ min: 0, max: Number.MAX_SAFE_INTEGER }, options);
}

/** A whole number, 1 or more. */
export function positive<const W extends string | undefined = undefined>(
  options: Options<number, W> = {},
): Field<number, number, number, 'required', W> {
  return integer<number, W>({ min: 1, max: Number.MAX_SAFE_INTEGER }, options);
}

interface ListLimits {
  readonly min: number;
  readonly max?: number;
  /** Whether the words are sorted in memory by their declaration. By default they keep the order of the request. */
  readonly isSorted?: boolean;
}

/** A list. Equal texts of a request become one item. */
export function list<T extends FieldMark, const W extends string | undefined = undefined>(
  of: T,
  limits: ListLimits,
  options: Options<In<T>[], W> = {},
): Field<readonly Memory<T>[], In<T>[], Out<T>[], 'required', W> {
  const item = of as unknown as AnyField;
  const { min, max = null, isSorted = false } = limits;
  const range = max === null ? `${min} or more` : `${min} to ${max}`;
  return field<readonly Memory<T>[], In<T>[], Out<T>[], W>({ kind: 'list', item: item.form, min, max }, options, {
    read(given, where, problems) {
      if (!Array.isArray(given) || given.length < min || given.length > (max ?? Number.POSITIVE_INFINITY)) {
        problems.push(`${where}: must be an array of ${range} ${nounOf(item.form)}s`);
        return undefined;
      }
      const items = given.map((each: unknown, index) => item.read(each, `${where}[${index}]`, problems));
      if (items.some((each) => each === undefined)) return undefined;
      const words = isSorted && item.form.kind === 'choice' ? item.form.words : null;
      return (words?.filter((word) => items.includes(word)) ?? [...new Set(items)]) as Memory<T>[];
    },
    write: (values) => values.map((value) => item.write(value) as Out<T>),
    restore: (reply) => reply.map((each) => item.restore(each) as Memory<T>),
    covers: (outer, inner) => inner.every((value) => outer.some((wider) => item.covers(wider, value))),
  });
}

/** The noun for one value in messages. */
export function nounOf(form: Form): string {
  if (form.kind === 'text') return form.grammar?.noun ?? 'text';
  return form.kind === 'choice' ? (form.noun ?? 'word') : 'value';
}

interface RecordRules<V> {
  readonly title: string;
  /** The names of its schemas in the OpenAPI document, if they differ from the title. */
  readonly names?: { readonly request: string; readonly reply: string };
  /** Whether one or more of the fields must be given. */
  readonly needsOne?: boolean;
  /** The rule across fields that the record breaks, as `field: rule`; null if it breaks none. */
  check?(record: V): string | null;
  /** Whether `outer` allows all that `inner` allows; without it, whether each of its fields does. */
  covers?(outer: V, inner: V): boolean;
}

export function record<F extends Fields, const W extends string | undefined = undefined>(
  fields: F,
  rules: RecordRules<ValueOf<F>>,
  options: Options<InputOf<F>, W> = {},
): Field<ValueOf<F>, InputOf<F>, ReplyOf<F>, 'required', W> {
  const { title, names = { request: title, reply: title }, needsOne = false, check = () => null } = rules;
  const inputs = wireNames(fields);
  const known = inputs.join(', ');
  const needed = `must have one or more of ${known}`;
  const broken = (value: unknown): string | null => {
    if (needsOne && Object.values(value as object).every((each) => each === null)) return needed;
    return check(value as ValueOf<F>);
  };
  const form: Form = { kind: 'record', fields, title, names, needsOne, broken };
  return field<ValueOf<F>, InputOf<F>, ReplyOf<F>, W>(form, options, {
    read(given, where, problems) {
      if (!isRecord(given)) {
        problems.push(`${where}: must be an object with ${needsOne ? `one or more of ${known}` : membersOf(fields)}`);
        return undefined;
      }
      if (needsOne && !inputs.some((name) => given[name] !== undefined)) {
        problems.push(`${where}: ${needed}`);
        return undefined;
      }
      const before = problems.length;
      const found = readFields(fields, given, `${where}.`, problems);
      const rule = problems.length === before ? check(found) : null;
      if (rule !== null) problems.push(`${where}.${rule}`);
      return problems.length === before ? found : undefined;
    },
    write: (value) => writeFields(fields, value),
    restore: (reply) => restoreFields(fields, reply as Readonly<Record<string, unknown>>) as ValueOf<F>,
    covers: rules.covers ?? ((outer, inner) => fieldsCover(fields, outer, inner)),
  });
}

function fieldsCover<F extends Fields>(fields: F, outer: ValueOf<F>, inner: ValueOf<F>): boolean {
  return entriesOf(fields).every(({ property, field: each }) => covers(each, outer[property], inner[property]));
}

function membersOf(fields: Fields): string {
  const required = entriesOf(fields).filter(({ field: { presence } }) => presence === 'required');
  const names = required.map(({ wire }) => wire);
  const others = wireNames(fields).filter((name) => !names.includes(name));
  return `${names.join(', ')}${others.length === 0 ? '' : `, and optionally ${others.join(', ')}`}`;
}
