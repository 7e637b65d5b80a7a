/**
 * The schema: made and brought up to date by numbered migrations, each in a transaction with the record that it was done, by one
 * node at a time. A node that is older than the schema works on where nothing was changed that it needs, and refuses else.
 */
import { type Migration, readMigrations } from '../migrations.ts';
import { StoreFailure } from '../port.ts';
import type { Connection } from './connection.ts';
import { sqlStateOf } from './failures.ts';

/** Any number that nobody else takes: 'LsHd'. */
const MIGRATION_LOCK = 0x4c734864;
// SOURCE: postgresql.org/docs/current/errcodes-appendix.html.
const INSUFFICIENT_PRIVILEGE = '42501';

/** The schema as it lies in a database. */
interface Schema {
  /** Of the last migration that was done; 0 for none. */
  readonly number: number;
  /** The least that a node must know to work with it. */
  readonly needs: number;
}

/** Brings the schema up to date where that is allowed. Resolves to how many migrations that took. @throws StoreFailure */
export async function prepareSchema(connection: Connection, mayMigrate: boolean): Promise<number> {
  const migrations = readMigrations('postgres');
  const { number, needs } = await readSchema(connection);
  if (needs > migrations.length) {
    throw new StoreFailure(
      'unavailable',
      `the database has schema ${number}, this Leasehold knows up to ${migrations.length}: start a newer Leasehold`,
    );
  }
  if (number >= migrations.length) return 0;
  if (!mayMigrate) {
    throw new StoreFailure(
      'unavailable',
      `the database has schema ${number}, this Leasehold needs ${migrations.length}, and --no-migrate is given: run npm run schema with the role that owns it`,
    );
  }
  return migrate(connection, migrations);
}

async function migrate(connection: Connection, migrations: readonly Migration[]): Promise<number> {
  // Whoever comes later waits for the first, and then finds nothing to do.
  await connection.script(
    `SET lock_timeout = 0; SET statement_timeout = 0; SELECT pg_advisory_lock(${MIGRATION_LOCK}, 0);`,
  );
  try {
    const { number: done } = await readSchema(connection);
    if (done === 0) await connection.script(FIRST);
    const left = migrations.slice(done);
    for (const { number, name, sql } of left) {
      const record = `INSERT INTO migrations (number, name, needs) VALUES (${number}, '${name}', ${number})`;
      await connection.script(`BEGIN; ${record}; ${sql}; COMMIT;`);
    }
    return left.length;
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StoreFailure(
      'unavailable',
      'the database has no schema of Leasehold, or an old one, and this role may not make it: run npm run schema with the role that may; docs/operations.md tells how',
      { cause: error },
    );
  } finally {
    // With its settings and its lock.
    connection.close();
  }
}

const FIRST = `BEGIN;
  CREATE SCHEMA IF NOT EXISTS leasehold;
  CREATE TABLE IF NOT EXISTS leasehold.migrations (
    number integer PRIMARY KEY, name text NOT NULL, needs integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
  COMMIT;`;

async function readSchema(connection: Connection): Promise<Schema> {
  const [there] = await connection.query`SELECT to_regclass('leasehold.migrations') IS NOT NULL AS is_there`;
  if (there?.['is_there'] !== true) return { number: 0, needs: 0 };
  const [row] = await connection.query`
    SELECT coalesce(max(number), 0) AS number, coalesce(max(needs), 0) AS needs FROM leasehold.migrations`;
  return { number: Number(row?.['number']), needs: Number(row?.['needs']) };
}
