/** Inserts any number of rows with one statement, whose text does not depend on it: the rows are a JSON parameter. */

import { raw, type Statement, sql } from '../statement.ts';
import type { ColumnType, Table } from '../table.ts';

/** The types in the JSON: bytes are base64, and a list becomes its JSON text. */
const TYPES: Readonly<Record<ColumnType, string>> = {
  text: 'text',
  number: 'bigint',
  bytes: 'text',
  list: 'text',
  json: 'text',
};

interface TableText {
  readonly target: string;
  readonly values: Statement;
  readonly types: Statement;
}

const known = new Map<string, TableText>();

function textOf({ name, columns }: Pick<Table<object>, 'name' | 'columns'>): TableText {
  const text = known.get(name) ?? {
    target: `${name} (${columns.map((column) => column.name).join(', ')}`,
    values: raw(
      columns
        .map(({ property, type }) => (type === 'bytes' ? `decode("${property}", 'base64')` : `"${property}"`))
        .join(', '),
    ),
    types: raw(columns.map(({ property, type }) => `"${property}" ${TYPES[type]}`).join(', ')),
  };
  known.set(name, text);
  return text;
}

/** `epoch` is for tables that have that column. */
export function insertItems<T>(table: Table<T>, items: readonly T[], epoch: number | null = null): Statement {
  const { target, values, types } = textOf(table);
  const added = epoch === null ? raw('') : sql`, ${epoch}::bigint`;
  return sql`INSERT INTO ${raw(`${target}${epoch === null ? ')' : ', epoch)'}`)} SELECT ${values}${added}
    FROM json_to_recordset(${toJson(table, items)}::text::json) AS r (${types})`;
}

/** Replaces all columns of rows with the same key; `id` is the primary key of `credentials`. */
export function upsertItems<T>(table: Table<T>, items: readonly T[]): Statement {
  const key = table.columns.some(({ name }) => name === 'id') ? ['id'] : table.key;
  const others = table.columns.filter(({ name }) => !key.includes(name));
  const assignments = others.map(({ name }) => `${name} = excluded.${name}`).join(', ');
  return sql`${insertItems(table, items)} ON CONFLICT (${raw(key.join(', '))}) DO UPDATE SET ${raw(assignments)}`;
}

function toJson<T>({ columns }: Table<T>, items: readonly T[]): string {
  const bytes = columns.find(({ type }) => type === 'bytes')?.property;
  if (bytes === undefined) return JSON.stringify(items);
  const toText = (content: unknown): unknown =>
    content instanceof Uint8Array ? Buffer.from(content).toString('base64') : content;
  return JSON.stringify(
    items.map((item) => ({ ...item, [bytes]: toText((item as Readonly<Record<string, unknown>>)[bytes]) })),
  );
}
