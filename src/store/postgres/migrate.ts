/**
 * The schema: made and brought up to date by numbered migrations, each in a transaction with the record that it was done, by one
 * node at a time. A node that is older than the schema works on where nothing was changed that it needs, and refuses else: a
 * migration that leaves older nodes working says so in a line of its own, such as `-- needs 3`, the least that a node must know.
 */
import { type Migration, readMigrations } from '../migrations.ts';
import { StoreError } from '../store.ts';
import type { Connection } from './connection.ts';
import { sqlStateOf } from './errors.ts';
import { assertPrivileges } from './privileges.ts';

/** Any number that nobody else takes: 'LsHd'. */
export const MIGRATION_LOCK = 0x4c734864;
// SOURCE: postgresql.org/docs/current/errcodes-appendix.html.
const INSUFFICIENT_PRIVILEGE = '42501';
const UNIQUE_VIOLATION = '23505';

/** The schema as it lies in a database. */
interface Schema {
  /** Whether the namespace is there, and the record of migrations in it. */
  readonly isNamed: boolean;
  readonly isRecorded: boolean;
  /** Of the last migration that was done; 0 for none. */
  readonly number: number;
  /** The least that a node must know to work with it. */
  readonly needs: number;
}

export const NO_SCHEMA: Schema = { isNamed: false, isRecorded: false, number: 0, needs: 0 };

/** Brings the schema up to date where that is allowed. Resolves to the names of the migrations that were done. @throws StoreError */
export async function prepareSchema(connection: Connection, mayMigrate: boolean): Promise<readonly string[]> {
  const migrations = readMigrations('postgres');
  const { number, needs } = await readSchema(connection);
  if (needs > migrations.length) {
    throw new StoreError(
      'unavailable',
      `the database has schema ${number}, which a Leasehold must know up to ${needs}, and this one knows up to ${migrations.length}: start a newer Leasehold`,
    );
  }
  if (number >= migrations.length) return [];
  if (!mayMigrate) {
    const has = number === 0 ? 'no schema of Leasehold' : `schema ${number}`;
    throw new StoreError(
      'unavailable',
      `the database has ${has}, this Leasehold needs ${migrations.length}, and --no-migrate is given: run npm run schema with the role that owns it`,
    );
  }
  return migrate(connection, migrations);
}

/** What is left to do on a schema, as it is run and can be read: a transaction for each migration. */
export function pendingScripts(schema: Schema): readonly { readonly name: string; readonly sql: string }[] {
  return toScripts(schema, readMigrations('postgres'));
}

function toScripts(schema: Schema, migrations: readonly Migration[]) {
  return migrations.slice(schema.number).map((migration) => {
    const { number, name, sql } = migration;
    // WHY not always IF NOT EXISTS: it takes the right to make schemas even where there is nothing to make.
    const isFirst = number === schema.number + 1;
    const script = [
      'BEGIN;',
      `${takeLock(MIGRATION_LOCK)}`,
      ...(isFirst && !schema.isNamed ? ['CREATE SCHEMA IF NOT EXISTS leasehold;'] : []),
      ...(isFirst && !schema.isRecorded ? [RECORD] : []),
      'SET LOCAL search_path = leasehold;',
      `INSERT INTO migrations (number, name, needs) VALUES (${number}, '${name}', ${minCompatible(migration)});`,
      sql.trim(),
      // A standby that does not answer is told by the first turn.
      `SET LOCAL statement_timeout = '10s';`,
      'COMMIT;',
    ];
    return { name, sql: script.join('\n') };
  });
}

const RECORD = `CREATE TABLE IF NOT EXISTS leasehold.migrations (
  number integer PRIMARY KEY, name text NOT NULL, needs integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());`;

/**
 * Statements that let one at a time through until the transaction ends; who comes later waits, for as long as it takes. WHY not a
 * lock of the session: a node that stands still would keep it, while a transaction that was sent whole ends without its sender.
 */
export function takeLock(number = MIGRATION_LOCK): string {
  return `SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(${number}, 0); SET LOCAL lock_timeout = '5s';`;
}

/** The least that a node must know to work with the schema that this migration leaves. */
export function minCompatible({ number, sql }: Migration): number {
  return Number(/^-- needs (\d+)$/m.exec(sql)?.[1] ?? number);
}

async function migrate(connection: Connection, migrations: readonly Migration[]): Promise<readonly string[]> {
  const done: string[] = [];
  try {
    await connection.script('SET statement_timeout = 0;');
    for (;;) {
      const schema = await readSchema(connection);
      const [next] = toScripts(schema, migrations);
      if (next === undefined) return done;
      try {
        await connection.script(next.sql);
        done.push(next.name);
      } catch (error) {
        await connection.script('ROLLBACK;');
        // Another node has recorded it meanwhile. Where none has, the same would only fail again.
        const isOvertaken =
          sqlStateOf(error) === UNIQUE_VIOLATION && (await readSchema(connection)).number > schema.number;
        if (!isOvertaken) throw error;
      }
    }
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StoreError(
      'unavailable',
      'the database has no schema of Leasehold, or an old one, and this role may not make it: run npm run schema with the role that may; docs/operations.md tells how',
      { cause: error },
    );
  } finally {
    // With its settings.
    connection.close();
  }
}

/** @throws StoreError where the role may not even look */
export async function readSchema(connection: Connection): Promise<Schema> {
  const [found] = await connection.query`
    SELECT n.oid IS NOT NULL AS is_named, c.oid IS NOT NULL AS is_recorded,
      has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS is_readable
    FROM (VALUES (1)) AS one
    LEFT JOIN pg_namespace n ON n.nspname = 'leasehold'
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'migrations'`;
  const isRecorded = found?.['is_recorded'] === true;
  if (!isRecorded) return { ...NO_SCHEMA, isNamed: found?.['is_named'] === true };
  if (found?.['is_readable'] !== true) await assertPrivileges(connection);
  const [row] = await connection.query`
    SELECT coalesce(max(number), 0) AS number, coalesce(max(needs), 0) AS needs FROM leasehold.migrations`;
  return { isNamed: true, isRecorded, number: Number(row?.['number']), needs: Number(row?.['needs']) };
}
