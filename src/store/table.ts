/** A table: its columns in order, and how rows become objects and back. */
import { entriesOf, type Fields, type Form, type ValueOf } from '../engine/field.ts';
import { type ResourceType, toColumn } from '../engine/resource.ts';
import { type Row, raw, type Statement, sql, type Value } from './statement.ts';
import type { Authenticated } from './store.ts';

/** A list is a JSON array of texts in a text column, and `json` any other JSON. */
export type ColumnType = 'text' | 'number' | 'bytes' | 'list' | 'json';

export interface Column {
  readonly property: string;
  readonly name: string;
  readonly type: ColumnType;
  /** The number of the migration that added the column. */
  readonly since: number;
}

export class Table<T> {
  readonly name: string;
  /** Names of the columns of the sort key; text is compared byte by byte. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  readonly list: Statement;
  readonly #byName: readonly Column[];

  /** The columns in order: the name of each is that of its property in snake case. */
  constructor(
    name: string,
    key: readonly string[],
    types: Readonly<Record<keyof T & string, ColumnType>>,
    since: Readonly<Record<string, number | undefined>> = {},
  ) {
    this.name = name;
    this.key = key;
    this.columns = Object.entries<ColumnType>(types).map(([property, type]) => ({
      property,
      name: toColumn(property),
      type,
      since: since[property] ?? 1,
    }));
    this.list = this.listOf('');
    this.#byName = this.columns.filter(({ name }) => name !== 'mac').sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The table of a resource, whose rows have a MAC. */
  static of<F extends Fields>({ table, key, fields }: ResourceType<F>): Table<Authenticated<ValueOf<F>>> {
    const types = entriesOf(fields).map(({ property, field }) => [property, COLUMN_TYPES[field.form.kind]] as const);
    const columns = Object.fromEntries([...types, ['mac', 'text']]) as Record<string, ColumnType>;
    const since = Object.fromEntries(entriesOf(fields).map(({ property, field }) => [property, field.since]));
    return new Table<Authenticated<ValueOf<F>>>(table, [toColumn(key)], columns as never, since);
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
      type === 'list' || type === 'json'
        ? JSON.stringify(properties[property] ?? null)
        : (properties[property] ?? null),
    );
  }
}

const COLUMN_TYPES: Readonly<Record<Form['kind'], ColumnType>> = {
  text: 'text',
  choice: 'text',
  integer: 'number',
  time: 'number',
  list: 'list',
  record: 'json',
};

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
