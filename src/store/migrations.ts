/**
 * Numbered migrations: `<number>_<name>.sql`, in one directory per dialect, and the columns that declarations of
 * resources add `since` a number.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TABLES } from './schema.ts';
import type { ColumnType } from './table.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
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

function readFiles(dialect: Dialect): Migration[] {
  const directory = join(import.meta.dirname, 'migrations', dialect);
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => ({
      number: Number.parseInt(file, 10),
      name: file.slice(0, -'.sql'.length),
      sql: readFileSync(join(directory, file), 'utf8'),
    }));
}

/** A migration for each column that was added to the first ones. Rows that exist have null in it. */
function addedColumns(dialect: Dialect): Migration[] {
  return TABLES.flatMap((table) =>
    table.columns
      .filter(({ since }) => since > 1)
      .map(({ name, type, since: number }) => ({
        number,
        name: `${String(number).padStart(4, '0')}_${table.name}_${name}`,
        sql: `ALTER TABLE ${table.name} ADD COLUMN ${name} ${COLUMN_SQL[dialect][type]};`,
      })),
  );
}

const COLUMN_SQL: Readonly<Record<Dialect, Readonly<Record<ColumnType, string>>>> = {
  sqlite: { text: 'TEXT', number: 'INTEGER', bytes: 'BLOB', list: 'TEXT', json: 'TEXT' },
  postgres: { text: 'text', number: 'bigint', bytes: 'bytea', list: 'text', json: 'text' },
};
