/** Inserts any number of rows with one statement, whose text does not depend on it: the rows are a JSON parameter. */
import type { Column, ColumnType, Table } from '../schema.ts';
import { type Row, raw, type Statement, sql } from '../statement.ts';

/** In the JSON: bytes are base64, and a list becomes its JSON text. */
const TYPES: Readonly<Record<ColumnType, string>> = { text: 'text', number: 'bigint', bytes: 'text', list: 'text' };

/** Items as the ledger has them, or rows by column name. */
type Field = 'property' | 'name';

interface RecordSet {
  readonly target: string;
  readonly values: Statement;
  readonly types: Statement;
}

const known = new Map<string, RecordSet>();

function recordSet({ name, columns }: Pick<Table<object>, 'name' | 'columns'>, field: Field): RecordSet {
  const key = `${field} ${name}`;
  const made = known.get(key) ?? {
    target: `${name} (${columns.map((column) => column.name).join(', ')}`,
    values: raw(columns.map((column) => valueSql(column, field)).join(', ')),
    types: raw(columns.map((column) => `"${column[field]}" ${TYPES[column.type]}`).join(', ')),
  };
  known.set(key, made);
  return made;
}

const valueSql = (column: Column, field: Field): string =>
  column.type === 'bytes' ? `decode("${column[field]}", 'base64')` : `"${column[field]}"`;

/** `epoch` is for tables that have that column. */
export function insertItems<T>(table: Table<T>, items: readonly T[], epoch: number | null = null): Statement {
  return insert(table, items, 'property', epoch);
}

export function insertRows(table: Table<object>, rows: readonly Row[], epoch: number | null = null): Statement {
  return insert(table, rows, 'name', epoch);
}

/** Replaces all columns of rows with the same id. */
export function upsertItems<T>(table: Table<T>, items: readonly T[]): Statement {
  const others = table.columns.filter(({ name }) => name !== 'id');
  const assignments = others.map(({ name }) => `${name} = excluded.${name}`).join(', ');
  return sql`${insertItems(table, items)} ON CONFLICT (id) DO UPDATE SET ${raw(assignments)}`;
}

function insert<T>(table: Table<T>, rows: readonly unknown[], field: Field, epoch: number | null): Statement {
  const { target, values, types } = recordSet(table, field);
  const added = epoch === null ? raw('') : sql`, ${epoch}::bigint`;
  return sql`INSERT INTO ${raw(`${target}${epoch === null ? ')' : ', epoch)'}`)} SELECT ${values}${added}
    FROM json_to_recordset(${toJson(table.columns, rows, field)}::text::json) AS r (${types})`;
}

function toJson(columns: readonly Column[], rows: readonly unknown[], field: Field): string {
  const ofBytes = columns.filter(({ type }) => type === 'bytes').map((column) => column[field]);
  if (ofBytes.length === 0) return JSON.stringify(rows);
  const toText = (name: string, value: unknown): unknown =>
    ofBytes.includes(name) && value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(Object.entries(Object(row)).map(([name, value]) => [name, toText(name, value)])),
    ),
  );
}
