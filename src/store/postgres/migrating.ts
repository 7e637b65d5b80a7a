/**
 * The schema: made and brought up to date by numbered migrations, each in a transaction with the record that it was done, by one
 * node at a time. A node that is older than the schema works on where nothing was changed that it needs, and refuses else.
 */
import { readMigrations } from '../migrations.ts';
import { StoreFailure } from '../port.ts';
import type { Connection } from './connection.ts';

/** Any number that nobody else takes: 'LsHd'. */
const MIGRATION_LOCK = 0x4c734864;

export async function migrate(connection: Connection): Promise<void> {
  const migrations = readMigrations('postgres');
  if ((await readSchema(connection)) >= migrations.length) {
    await assertKnown(connection, migrations.length);
    return;
  }
  await connection.query`SET lock_timeout = 0`;
  await connection.query`SELECT pg_advisory_lock(${MIGRATION_LOCK}::integer, 0)`;
  try {
    await connection.script(
      `CREATE SCHEMA IF NOT EXISTS leasehold;
       CREATE TABLE IF NOT EXISTS leasehold.migrations (
         number integer PRIMARY KEY, name text NOT NULL, needs integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());`,
    );
    const done = await readSchema(connection);
    for (const { number, name, sql } of migrations.slice(done)) {
      await connection.script(
        `BEGIN; INSERT INTO migrations (number, name, needs) VALUES (${number}, '${name}', ${number}); ${sql}; COMMIT;`,
      );
    }
  } finally {
    // With its settings and its lock.
    connection.close();
  }
}

/** The number of the last migration that was done; 0 for none. */
async function readSchema(connection: Connection): Promise<number> {
  const [there] = await connection.query`SELECT to_regclass('leasehold.migrations') IS NOT NULL AS is_there`;
  if (there?.['is_there'] !== true) return 0;
  const [row] = await connection.query`SELECT coalesce(max(number), 0) AS number FROM migrations`;
  return Number(row?.['number']);
}

async function assertKnown(connection: Connection, latest: number): Promise<void> {
  const [row] = await connection.query`SELECT max(number) AS number, max(needs) AS needs FROM migrations`;
  if (Number(row?.['needs']) > latest) {
    throw new StoreFailure(
      'unavailable',
      `the database has schema ${Number(row?.['number'])}, this Leasehold knows up to ${latest}: start a newer Leasehold`,
    );
  }
}
