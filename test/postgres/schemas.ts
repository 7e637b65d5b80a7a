/** Shared by the tests of the schema: opens and closes a store, and describes a schema. */
import { readMigrations } from '../../src/store/migrations.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { querySql } from '../kit/postmaster.ts';

/** Their names, in order. */
export const MIGRATIONS = readMigrations('postgres').map(({ name }) => name);
export const NEWEST = MIGRATIONS.length;

/** Opens the store and closes it again. */
export async function open(url: string, mayMigrate = true): Promise<void> {
  const store = await PostgresStore.open(parseAddress(url), mayMigrate);
  await store.close();
}

export const migrationsOf = async (url: string) =>
  (await querySql(url, 'SELECT name FROM leasehold.migrations ORDER BY number')).map((row) => row['name']);

/** Every column, index and view, as text. */
export async function shapeOf(url: string): Promise<unknown> {
  const [row] = await querySql(
    url,
    `SELECT (SELECT string_agg(concat_ws(' ', table_name, column_name, data_type, is_nullable, collation_name), E'\\n'
         ORDER BY table_name, ordinal_position) FROM information_schema.columns WHERE table_schema = 'leasehold') AS columns,
       (SELECT string_agg(indexdef, E'\\n' ORDER BY indexname) FROM pg_indexes WHERE schemaname = 'leasehold') AS indexes,
       (SELECT string_agg(pg_get_viewdef(oid), E'\\n') FROM pg_class
         WHERE relkind = 'v' AND relnamespace = 'leasehold'::regnamespace) AS views`,
  );
  return row;
}
