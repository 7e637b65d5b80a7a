/** A table: its columns in order, the conversion between rows and objects, and the rules for the values of a backup. */
import { invalidRequest } from '../engine/errors.ts';
import { type AnyField, entriesOf, type Fields, type Grammar, type ValueOf } from '../engine/field.ts';
import { isStorable } from '../engine/kinds.ts';
import { type StoredSpec, toColumn } from '../engine/resource.ts';
import { type Row, raw, type Statement, sql, type Value } from './statement.ts';
import type { Authenticated } from './stored-data.ts';
import type { ValueRule } from './value-rules.ts';
import * as rules from './value-rules.ts';

/** `list` is a JSON array of texts in a text column; `json` is any other JSON. */
export type ColumnType = 'text' | 'number' | 'bytes' | 'list' | 'json';

export interface Column {
  readonly property: string;
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
  /** The rule for a value in a backup, where bytes are base64 and JSON is text. */
  readonly rule: ValueRule;
  /** The rule for the value in memory; null for bytes and MACs, which only the server makes. */
  readonly inMemory: ValueRule | null;
  /** The number of the migration that added the column. */
  readonly since: number;
}

/** The largest number of rows in a table that the server holds in memory. */
const MAX_HELD_ROWS = 1_000_000;
const MAX_JSON_LENGTH = 4 * 1024 * 1024;
/** Milliseconds since 1970; the maximum is the end of the year 9999. */
export const time = rules.integer(0, 253_402_300_799_999);
export const mac = rules.base64(32, 32);
/** WHY any character: a restore must accept every text that the server has recorded. Code that prints it escapes it. */
const anyText = rules.anyText(65_536);

const isJson = (type: ColumnType): boolean => type === 'list' || type === 'json';

export class Table<T> {
  readonly name: string;
  /** Names of the columns of the sort key; text is compared byte by byte. */
  readonly key: readonly string[];
  readonly columns: readonly Column[];
  /** The largest number of rows that a restore accepts; undefined for any number. */
  readonly maxRows: number | undefined;
  /** The column in which no two rows have the same value; null if the key is the only one. */
  readonly unique: { readonly column: string; readonly isCaseless: boolean } | null;
  readonly list: Statement;
  readonly #byName: readonly Column[];

  private constructor(spec: StoredSpec<Fields, string>, columns: readonly Column[]) {
    const { table, key, id, isHeld } = spec;
    this.name = table;
    this.key = [id ?? key].flat().map(toColumn);
    const isCaseless = spec.subject?.isCaseless === true;
    this.unique = id === undefined ? null : { column: toColumn(String(key)), isCaseless };
    this.maxRows = spec.maxRows ?? (isHeld ? MAX_HELD_ROWS : undefined);
    this.columns = columns;
    this.list = this.listOf('');
    this.#byName = columns.filter(({ name }) => name !== 'mac').sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The table of declared rows that have a MAC. */
  static withMac<F extends Fields>(spec: StoredSpec<F>): Table<Authenticated<ValueOf<F>>> {
    const column: Column = {
      property: 'mac',
      name: 'mac',
      type: 'text',
      isNullable: false,
      rule: mac,
      inMemory: null,
      since: 1,
    };
    return new Table<Authenticated<ValueOf<F>>>(spec, [...columnsOf(spec.fields), column]);
  }

  static of<F extends Fields>(spec: StoredSpec<F>): Table<ValueOf<F>> {
    return new Table<ValueOf<F>>(spec, columnsOf(spec.fields));
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

  /** Decodes an array that begins with the values of the columns in `list`. */
  decodeArray(row: readonly unknown[]): T {
    const decoded: Record<string, unknown> = {};
    for (const [at, { property, type }] of this.columns.entries()) {
      const value = row[at] ?? null;
      decoded[property] = value !== null && isJson(type) ? DECODE[type](value) : value;
    }
    return decoded as T;
  }

  /** The condition that selects the rows with the same key. */
  whereKeyOf(row: object): Statement {
    const [first, ...others] = this.key.map((name) => {
      const property = this.columns.find((column) => column.name === name)?.property ?? name;
      return sql`${raw(name)} = ${toValue((row as Readonly<Record<string, unknown>>)[property])}`;
    });
    return others.reduce((all, each) => sql`${all} AND ${each}`, first ?? raw('false'));
  }

  /**
   * The values that the MAC of the row covers, by the name of the column in code-point order: all except `mac` and
   * nulls. A new column therefore does not change the MAC of a row that has no value in it.
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

  /**
   * The rule that a value of the row breaks, behind the name of its column; null if a restore accepts the values.
   * Columns that the ledger adds later, such as the MAC, are missing here.
   */
  brokenRule(item: object): string | null {
    const properties = item as Readonly<Record<string, unknown>>;
    for (const { property, name, inMemory } of this.columns) {
      if (!(property in properties)) continue;
      const broken = inMemory?.(properties[property] ?? null) ?? null;
      if (broken !== null) return `${name} ${broken}`;
    }
    return null;
  }

  encode(item: T): Value[] {
    const properties = item as Readonly<Record<string, Value | undefined>>;
    return this.columns.map(({ property, type }) => {
      const value = properties[property] ?? null;
      return isJson(type) ? JSON.stringify(value) : value;
    });
  }
}

function columnsOf(fields: Fields): Column[] {
  return entriesOf(fields).map(({ property, field }) => {
    const type = typeOf(field);
    const inMemory = ruleOf(field);
    const rule = isJson(type) ? rules.json(MAX_JSON_LENGTH, inMemory) : inMemory;
    const isNullable = isOptional(field);
    return {
      property,
      name: toColumn(property),
      type,
      isNullable,
      rule: isNullable ? orNull(type, rule) : rule,
      inMemory: type === 'bytes' ? null : isNullable ? rules.nullable(inMemory) : inMemory,
      since: field.since,
    };
  });
}

/** A JSON column may also contain the text `null`. */
function orNull(type: ColumnType, rule: ValueRule): ValueRule {
  const isNull: ValueRule = (value) => (value === null || (isJson(type) && value === 'null') ? null : 'is not null');
  return rules.either(isNull, rule);
}

const isOptional = ({ presence, nulls }: AnyField): boolean => presence === 'optional' || nulls !== 'nowhere';

function typeOf({ form }: AnyField): ColumnType {
  switch (form.kind) {
    case 'text':
    case 'choice':
      return 'text';
    case 'integer':
    case 'time':
      return 'number';
    case 'bytes':
      return 'bytes';
    case 'list':
      return form.item.kind === 'record' ? 'json' : 'list';
    case 'boolean':
    case 'record':
    case 'kinds':
    case 'map':
      return 'json';
  }
}

/** The rules for the values of a row, with bytes as base64. */
export function rulesOf<F extends Fields>(fields: F): { readonly [K in keyof F]: ValueRule } {
  const found = entriesOf(fields).map(({ property, field }) => [
    property,
    isOptional(field) ? rules.nullable(ruleOf(field)) : ruleOf(field),
  ]);
  return Object.fromEntries(found) as { readonly [K in keyof F]: ValueRule };
}

/** The rule for a value in memory. */
function ruleOf(field: AnyField): ValueRule {
  const { form } = field;
  switch (form.kind) {
    case 'text':
      return form.grammar === null ? anyText : rules.parsed(storedText(form.grammar));
    case 'boolean':
      return rules.isBoolean;
    case 'integer':
      return rules.integer(form.min, form.max);
    case 'choice':
      return rules.oneOf(form.words);
    case 'time':
      return time;
    case 'bytes':
      return rules.base64(form.min, form.max);
    case 'list': {
      const most = form.item.kind === 'choice' ? form.item.words.length : Number.MAX_SAFE_INTEGER;
      // The store contains null in place of an empty list of this kind.
      const least = field.nulls === 'in memory' ? 1 : form.min;
      return rules.listOf(ruleOf({ ...field, form: form.item }), least, form.max ?? most);
    }
    case 'record': {
      const shape = rules.objectOf(rulesOf(form.fields));
      return (value) => shape(value) ?? form.broken(value);
    }
    case 'kinds': {
      const kinds = Object.entries(form.of).map(([kind, fields]) => [
        kind,
        rules.objectOf({ kind: rules.equalTo(kind), ...rulesOf(fields) }),
      ]);
      return rules.oneKindOf(Object.fromEntries(kinds));
    }
    case 'map':
      return rules.mapOf(
        form.name,
        (value) => (form.isScalar(value) ? null : 'must be a text or a number'),
        form.max ?? Number.MAX_SAFE_INTEGER,
      );
  }
}

/** Checks the text of a value in memory, which requests may contain in another form. @throws INVALID_REQUEST */
function storedText({ parse, format }: Grammar<string>): (text: string, field: string) => void {
  return (text, field) => {
    const value = parse(format === undefined ? text : format(text), field);
    if (value !== text || !isStorable(text)) throw invalidRequest(field, 'must have the form that the server stores');
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

/** WHY compared: the MAC covers the value, and several texts have the same value. JSON writes `1e400` as null. */
function toJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? value : null;
  } catch {
    return null;
  }
}
