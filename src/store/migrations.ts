/**
 * Numbered migrations: `<number>_<name>.sql`, in one directory per dialect, and the columns that declarations of
 * resources add `since` a number.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StoreError } from './errors.ts';
import { AUDIT_ENTRIES, RESOURCE_TABLES, TABLES } from './schema.ts';
import type { Column, ColumnType } from './table.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/**
 * Checks before a migration that the database has the columns of its schema. Versions before the first release had
 * other formats under the same number. `present` are the columns as `table.column`. @throws StoreError
 */
export function assertColumns(present: readonly string[], schema: number): void {
  const known = new Set(present);
  // Another check reports a missing table.
  const tables = new Set(present.map((column) => column.split('.')[0]));
  const wanted = [AUDIT_ENTRIES, ...Object.values(RESOURCE_TABLES)].flatMap(({ name, columns }) =>
    columns.filter(({ since }) => since <= schema && tables.has(name)).map((column) => `${name}.${column.name}`),
  );
  const missing = wanted.find((column) => !known.has(column));
  if (missing === undefined) return;
  throw new StoreError(
    'unavailable',
    `the database has no column ${missing}: a version before the first release wrote it, or it was altered. Nothing was changed; start the version that wrote it`,
  );
}

type Dialect = 'sqlite' | 'postgres';

/** Returns the migrations in order; the numbers are 1, 2, 3 … without gaps. */
export function readMigrations(dialect: Dialect): Migration[] {
  const all = [...readFiles(dialect), ...addedColumns(dialect)].sort((a, b) => a.number - b.number);
  for (const [index, { number, name }] of all.entries()) {
    if (number !== index + 1) throw new Error(`migration ${name} is out of order`);
  }
  return all;
}

/** The scripts, in which `:columns` stands for the shared columns of a table. */
function readFiles(dialect: Dialect): Migration[] {
  const directory = join(import.meta.dirname, 'migrations', dialect);
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => ({
      number: Number.parseInt(file, 10),
      name: file.slice(0, -'.sql'.length),
      sql: withColumns(readFileSync(join(directory, file), 'utf8'), dialect),
    }));
}

function withColumns(script: string, dialect: Dialect): string {
  return script.replaceAll(/(CREATE TABLE (\w+) \(\s*):columns\b/g, (_, start: string, name: string) => {
    const table = TABLES.find((each) => each.name === name);
    if (table === undefined) throw new Error(`a migration names the unknown table ${name}`);
    const columns = table.columns.filter(({ since }) => since === 1);
    return start + columns.map((column) => columnSql(column, dialect)).join(',\n  ');
  });
}

/** A migration for each column that was added to the first ones. Rows that exist have null in it. */
function addedColumns(dialect: Dialect): Migration[] {
  return TABLES.flatMap((table) =>
    table.columns
      .filter(({ since }) => since > 1)
      .map((column) => ({
        number: column.since,
        name: `${String(column.since).padStart(4, '0')}_${table.name}_${column.name}`,
        sql: `ALTER TABLE ${table.name} ADD COLUMN ${columnSql(column, dialect)};`,
      })),
  );
}

function columnSql({ name, type, isNullable }: Column, dialect: Dialect): string {
  return `${name} ${TYPES[dialect][type]}${isNullable ? '' : ' NOT NULL'}`;
}

/** Text is ordered and compared byte by byte. */
const TYPES: Readonly<Record<Dialect, Readonly<Record<ColumnType, string>>>> = {
  sqlite: { text: 'TEXT', number: 'INTEGER', bytes: 'BLOB', list: 'TEXT', json: 'TEXT' },
  postgres: { text: 'text COLLATE "C"', number: 'bigint', bytes: 'bytea', list: 'text', json: 'text' },
};
