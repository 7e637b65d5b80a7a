/** The kinds of values with parts: lists, records, records of several kinds, and maps. */
import {
  type AnyField,
  covers,
  entriesOf,
  type Field,
  type FieldMark,
  type Fields,
  type Form,
  type In,
  type InputOf,
  isRecord,
  type Memory,
  type Out,
  type ReplyOf,
  readFields,
  restoreFields,
  type ValueOf,
  wireNames,
  writeFields,
} from './field.ts';
import { field, isStorable, type Options, readWord } from './kinds.ts';

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
  options: Options<readonly In<T>[], W> = {},
): Field<readonly Memory<T>[], readonly In<T>[], Out<T>[], 'required', W> {
  const item = of as unknown as AnyField;
  const { min, max = null, isSorted = false } = limits;
  const range = max === null ? `${min} or more` : `${min} to ${max}`;
  return field<readonly Memory<T>[], readonly In<T>[], Out<T>[], W>(
    { kind: 'list', item: item.form, min, max },
    options,
    {
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
    },
  );
}

/** The noun for one value in messages. */
export function nounOf(form: Form): string {
  if (form.kind === 'text') return form.grammar?.noun ?? 'text';
  if (form.kind === 'record') return form.title.toLowerCase();
  return form.kind === 'choice' ? (form.noun ?? 'word') : 'value';
}

interface RecordRules<V> {
  readonly title: string;
  /** The names of its schemas in the OpenAPI document, if they differ from the title. */
  readonly names?: { readonly request: string; readonly reply: string };
  /** Whether one or more of the fields must be given. */
  readonly needsOne?: boolean;
  /** Whether unknown fields are ignored: a later version of the program that makes the record may add some. */
  readonly isOpen?: boolean;
  /** The rule across fields that the record breaks, as `field: rule`; null if it breaks none. */
  check?(record: V): string | null;
  /** Whether `outer` allows everything that `inner` allows. Without it, the fields are compared one by one. */
  covers?(outer: V, inner: V): boolean;
}

export function record<F extends Fields, const W extends string | undefined = undefined>(
  fields: F,
  rules: RecordRules<ValueOf<F>>,
  options: Options<InputOf<F>, W> = {},
): Field<ValueOf<F>, InputOf<F>, ReplyOf<F>, 'required', W> {
  const { title, names = { request: title, reply: title }, needsOne = false, isOpen = false } = rules;
  const { check = () => null } = rules;
  const inputs = wireNames(fields);
  const known = inputs.join(', ');
  const needed = `must have one or more of ${known}`;
  const broken = (value: unknown): string | null => {
    if (needsOne && Object.values(value as object).every((each) => each === null)) return needed;
    return check(value as ValueOf<F>);
  };
  const form: Form = { kind: 'record', fields, title, names, needsOne, isOpen, broken };
  return field<ValueOf<F>, InputOf<F>, ReplyOf<F>, W>(form, options, {
    read(given, where, problems) {
      if (!isRecord(given)) {
        problems.push(`${where}: must be an object${needsOne ? ` with one or more of ${known}` : membersOf(fields)}`);
        return undefined;
      }
      if (needsOne && !inputs.some((name) => given[name] !== undefined)) {
        problems.push(`${where}: ${needed}`);
        return undefined;
      }
      const before = problems.length;
      const found = readFields(fields, given, `${where}.`, problems, isOpen);
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
  if (names.length > 0)
    return ` with ${names.join(', ')}${others.length === 0 ? '' : `, and optionally ${others.join(', ')}`}`;
  return others.length === 0 ? '' : ` with optional fields: ${others.join(', ')}`;
}

type Kinds = Readonly<Record<string, Fields>>;
type Tagged<K, T> = { readonly kind: K } & T;
/** A union of records that `kind` tells apart. */
export type OneKindOf<V extends Kinds> = { [K in keyof V & string]: Tagged<K, ValueOf<V[K]>> }[keyof V & string];
export type InputOfKinds<V extends Kinds> = { [K in keyof V & string]: Tagged<K, InputOf<V[K]>> }[keyof V & string];
export type ReplyOfKinds<V extends Kinds> = { [K in keyof V & string]: Tagged<K, ReplyOf<V[K]>> }[keyof V & string];

/** A record of one of several kinds, each with its own fields. The field `kind` names it. */
export function kinds<const V extends Kinds, const W extends string | undefined = undefined>(
  of: V,
  { title }: { readonly title: string },
  options: Options<InputOfKinds<V>, W> = {},
): Field<OneKindOf<V>, InputOfKinds<V>, ReplyOfKinds<V>, 'required', W> {
  const words = Object.keys(of);
  const fieldsOf = ({ kind }: { readonly kind: string }): Fields => of[kind] ?? {};
  const form: Form = { kind: 'kinds', of, title };
  return field<OneKindOf<V>, InputOfKinds<V>, ReplyOfKinds<V>, W>(form, options, {
    read(given, where, problems) {
      if (!isRecord(given)) {
        problems.push(`${where}: must be an object with kind`);
        return undefined;
      }
      const { kind: word, ...others } = given;
      const before = problems.length;
      if (word === undefined) problems.push(`${where}.kind: is required`);
      const kind = word === undefined ? undefined : readWord(words, word, `${where}.kind`, problems);
      if (kind === undefined) return undefined;
      const own = wireNames(of[kind] ?? {});
      for (const name of Object.keys(others).filter((each) => !own.includes(each))) {
        const takers = words.filter((each) => wireNames(of[each] ?? {}).includes(name));
        const known = ['kind', ...own].join(', ');
        problems.push(
          takers.length === 0
            ? `${where}: has an unknown field; the allowed fields are ${known}`
            : `${where}.${name}: is only for ${takers.join(' and ')}`,
        );
      }
      if (problems.length > before) return undefined;
      const found = readFields(of[kind] ?? {}, others, `${where}.`, problems);
      return problems.length === before ? ({ kind, ...found } as OneKindOf<V>) : undefined;
    },
    write: (value) => ({ kind: value.kind, ...writeFields(fieldsOf(value), value) }) as ReplyOfKinds<V>,
    restore: (reply) => ({ kind: reply.kind, ...restoreFields(fieldsOf(reply), reply) }) as OneKindOf<V>,
    covers: (outer, inner) => outer.kind === inner.kind && fieldsCover(fieldsOf(outer), outer, inner),
  });
}

interface MapRules {
  /** The pattern of the names. */
  readonly name: RegExp;
  readonly max: number;
  readonly maxTextLength: number;
  readonly maxInteger: number;
  readonly title: string;
}
type Scalars = Readonly<Record<string, string | number>>;

/** An object with any names that match the pattern. Its values are texts, or whole numbers of 0 or more. */
export function map(
  rules: MapRules,
  options: Options<Scalars, undefined> = {},
): Field<Scalars, Scalars, Record<string, string | number>, 'required', undefined> {
  const { name, max, maxTextLength, maxInteger } = rules;
  const isScalar = (value: unknown): value is string | number =>
    typeof value === 'string'
      ? value.length <= maxTextLength && isStorable(value)
      : typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxInteger;
  return field<Scalars, Scalars, Record<string, string | number>, undefined>(
    { kind: 'map', ...rules, isScalar },
    options,
    {
      read(given, where, problems) {
        if (!isRecord(given) || Object.keys(given).length > max)
          problems.push(`${where}: must be an object with at most ${max} fields`);
        else if (!Object.keys(given).every((key) => name.test(key))) problems.push(`${where}: has an invalid name`);
        else if (Object.values(given).every(isScalar)) return given as Scalars;
        else
          problems.push(
            `${where}: must have values that are well-formed texts of at most ${maxTextLength} characters, or whole numbers up to ${maxInteger}`,
          );
        return undefined;
      },
      write: (value) => ({ ...value }),
      restore: (reply) => reply,
      covers: Object.is,
    },
  );
}
