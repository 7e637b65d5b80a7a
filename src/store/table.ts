/** A table: its columns in order, how rows become objects and back, and the rules of what a backup may contain. */
import { invalidRequest } from '../engine/errors.ts';
import { type AnyField, entriesOf, type Fields, type Grammar, type ValueOf } from '../engine/field.ts';
import { toColumn } from '../engine/resource.ts';
import { JSON_LENGTH, logText, mac, time } from './column-rules.ts';
import { type Row, raw, type Statement, sql, type Value } from './statement.ts';
import type { Authenticated } from './store.ts';
import type { ValueRule } from './value-rules.ts';
import * as rules from './value-rules.ts';

/** A list is a JSON array of texts in a text column, and `json` any other JSON. */
export type ColumnType = 'text' | 'number' | 'bytes' | 'list' | 'json';

interface ColumnSpec {
  readonly type: ColumnType;
  readonly isNullable: boolean;
  /** What a backup may contain: bytes are base64, and JSON is text. */
  readonly rule: ValueRule;
  /** The number of the migration that added the column. */
  readonly since: number;
}

export interface Column extends ColumnSpec {
  readonly property: string;
  readonly name: string;
}

const column =
  (type: ColumnType) =>
  (rule: ValueRule): ColumnSpec => ({ type, isNullable: false, rule, since: 1 });

export const text = column('text');
export const number = column('number');
export const bytes = column('bytes');
/** The rule is that of the values. */
const list = (rule: ValueRule): ColumnSpec => column('list')(rules.json(JSON_LENGTH, rule));
export const json = (rule: ValueRule): ColumnSpec => column('json')(rules.json(JSON_LENGTH, rule));

/** JSON may also be the text `null`. */
export function nullable({ rule, ...spec }: ColumnSpec): ColumnSpec {
  const isNull: ValueRule = (value) =>
    value === null || (isJson(spec.type) && value === 'null') ? null : 'is not null';
  return { ...spec, isNullable: true, rule: rules.either(isNull, rule) };
}

const isJson = (type: ColumnType): boolean => type === 'list' || type === 'json';

/** Rows that the server holds in memory. */
export const MAX_HELD_ROWS = 1_000_000;

interface Limits {
  /** Far above any vault, or the number that is possible; any number by default. */
  readonly maxRows?: number;
  /** A column that no two rows have in common, whatever its case. */
  readonly unique?: string;
}

interface DeclaredRows<F extends Fields> {
  readonly table: string;
  readonly key: string;
  readonly id?: string;
  readonly fields: F;
}

interface DeclaredTable<F extends Fields> extends Omit<DeclaredRows<F>, 'key' | 'id'> {
  readonly key: readonly (keyof F & string)[];
}

export class Table<T> {
  readonly name: string;
  /** Names of the columns of the sort key; text is compared byte by byte. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  readonly limits: Limits;
  readonly list: Statement;
  readonly #byName: readonly Column[];

  /** The columns in order: the name of each is that of its property in snake case. */
  constructor(
    name: string,
    key: readonly string[],
    columns: Readonly<Record<keyof T & string, ColumnSpec>>,
    limits: Limits = {},
  ) {
    this.name = name;
    this.key = key;
    this.limits = limits;
    this.columns = Object.entries<ColumnSpec>(columns).map(([property, spec]) => ({
      ...spec,
      property,
      name: toColumn(property),
    }));
    this.list = this.listOf('');
    this.#byName = this.columns.filter(({ name }) => name !== 'mac').sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The table of declared rows, which have a MAC. By default the server holds them in memory. */
  static of<F extends Fields>(
    { table, key, id = key, fields }: DeclaredRows<F>,
    limits: Limits = { maxRows: MAX_HELD_ROWS },
  ): Table<Authenticated<ValueOf<F>>> {
    const all = { ...columnsOf(fields), mac: text(mac) };
    const unique = id === key ? {} : { unique: toColumn(key) };
    return new Table<Authenticated<ValueOf<F>>>(table, [toColumn(id)], all as never, { ...limits, ...unique });
  }

  /** The table of declared rows without a MAC. */
  static ofUnsigned<F extends Fields>({ table, key, fields }: DeclaredTable<F>): Table<ValueOf<F>> {
    return new Table<ValueOf<F>>(table, key.map(toColumn), columnsOf(fields) as never);
  }

  /** The column names, each with the prefix. */
  listOf(prefix: string): Statement {
    return raw(this.columns.map(({ name }) => prefix + name).join(', '));
  }

  decode(row: Row): T {
    const decoded: Record<string, unknown> = {};
    for (const { property, name, type } of this.columns) {
      const value = row[name];
      decoded[property] = value === null || value === undefined ? null : DECODE[type](value);
    }
    return decoded as T;
  }

  /** Decodes an array whose first values are those of `list`. */
  decodeArray(row: readonly unknown[]): T {
    const decoded: Record<string, unknown> = {};
    for (const [at, { property, type }] of this.columns.entries()) {
      const value = row[at] ?? null;
      decoded[property] = value !== null && isJson(type) ? DECODE[type](value) : value;
    }
    return decoded as T;
  }

  /** The rows with the same key. */
  whereKeyOf(row: object): Statement {
    const [first, ...others] = this.key.map((name) => {
      const property = this.columns.find((column) => column.name === name)?.property ?? name;
      return sql`${raw(name)} = ${toValue((row as Readonly<Record<string, unknown>>)[property])}`;
    });
    return others.reduce((all, each) => sql`${all} AND ${each}`, first ?? raw('false'));
  }

  /**
   * The values that the MAC of the row covers: those of all columns but `mac` that are not null, by the name of the
   * column in code-point order. A column that is added later does not change the MAC of a row without a value in it.
   */
  macValues(item: Omit<T, 'mac'>): Readonly<Record<string, unknown>> {
    const properties = item as Readonly<Record<string, unknown>>;
    const values: Record<string, unknown> = {};
    for (const { property, name } of this.#byName) {
      const value = properties[property];
      if (value !== null && value !== undefined) values[name] = value;
    }
    return values;
  }

  encode(item: T): Value[] {
    const properties = item as Readonly<Record<string, Value | undefined>>;
    return this.columns.map(({ property, type }) =>
      isJson(type) ? JSON.stringify(properties[property] ?? null) : (properties[property] ?? null),
    );
  }
}

function columnsOf(fields: Fields): Readonly<Record<string, ColumnSpec>> {
  return Object.fromEntries(entriesOf(fields).map(({ property, field }) => [property, columnOf(field)]));
}

function columnOf(field: AnyField): ColumnSpec {
  const spec = { ...specOf(field), since: field.since };
  return isOptional(field) ? nullable(spec) : spec;
}

const isOptional = ({ presence, nulls }: AnyField): boolean => presence === 'optional' || nulls !== 'nowhere';

function specOf(field: AnyField): ColumnSpec {
  const rule = ruleOf(field);
  switch (field.form.kind) {
    case 'text':
    case 'choice':
      return text(rule);
    case 'integer':
    case 'time':
      return number(rule);
    case 'list':
      return field.form.item.kind === 'record' ? json(rule) : list(rule);
    case 'boolean':
    case 'record':
      return json(rule);
  }
}

/** The rule of a value in memory. */
function ruleOf(field: AnyField): ValueRule {
  const { form } = field;
  switch (form.kind) {
    case 'text':
      return form.grammar === null ? logText : rules.parsed(storedText(form.grammar));
    case 'boolean':
      return rules.isBoolean;
    case 'integer':
      return rules.integer(form.min, form.max);
    case 'choice':
      return rules.oneOf(form.words);
    case 'time':
      return time;
    case 'list': {
      const most = form.item.kind === 'choice' ? form.item.words.length : Number.MAX_SAFE_INTEGER;
      // The store has null in place of an empty list of this kind.
      const least = field.nulls === 'in memory' ? 1 : form.min;
      return rules.listOf(ruleOf({ ...field, form: form.item }), least, form.max ?? most);
    }
    case 'record': {
      const members = entriesOf(form.fields).map(({ property, field: member }): [string, ValueRule] => [
        property,
        isOptional(member) ? rules.nullable(ruleOf(member)) : ruleOf(member),
      ]);
      const shape = rules.objectOf(Object.fromEntries(members));
      return (value) => shape(value) ?? form.broken(value);
    }
  }
}

/** Checks the text of a value in memory, which requests may contain in another form. @throws INVALID_REQUEST */
function storedText({ parse, format }: Grammar<string>): (text: string) => void {
  return (text) => {
    const value = parse(format === undefined ? text : format(text), 'value');
    if (value !== text) throw invalidRequest('value', 'must have the form that the server stores');
  };
}

export function toValue(value: unknown): Value {
  return typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array ? value : null;
}

const DECODE: Readonly<Record<ColumnType, (value: unknown) => unknown>> = {
  text: String,
  number: Number,
  bytes: (value) => (value instanceof Uint8Array ? value : new Uint8Array()),
  list: (value) => toList(String(value)),
  json: (value) => toJson(String(value)),
};

/** Invalid JSON means an altered row, whose MAC does not match either. */
function toList(json: string): string[] | null {
  try {
    const list: unknown = JSON.parse(json);
    if (list === null) return null;
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

/** WHY compared: the MAC covers the value, and several texts have one value; `1e400` is written as null. */
function toJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? value : null;
  } catch {
    return null;
  }
}
