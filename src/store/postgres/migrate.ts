/**
 * Applies numbered migrations, one node at a time, each in a transaction with its record; and the commands of the owner
 * of the schema: migrate it, and grant privileges to the server's role.
 */
import { StoreError } from '../errors.ts';
import { assertColumns, type Migration, readMigrations } from '../migrations.ts';
import { Connection } from './connection.ts';
import { pinHost } from './database-hosts.ts';
import type { PostgresAddress } from './database-url.ts';
import { sqlStateOf, toStoreError } from './errors.ts';
import { assertPrivileges, grantsFor, toIdentifier } from './privileges.ts';

/** Advisory lock key: 'LsHd'. */
export const MIGRATION_LOCK = 0x4c734864;
// SOURCE: postgresql.org/docs/current/errcodes-appendix.html.
const INSUFFICIENT_PRIVILEGE = '42501';
const UNIQUE_VIOLATION = '23505';

interface Schema {
  /** Whether the namespace exists, and the table of migrations in it. */
  readonly isNamed: boolean;
  readonly isRecorded: boolean;
  /** The last applied migration; 0 for none. */
  readonly number: number;
}

const NO_SCHEMA: Schema = { isNamed: false, isRecorded: false, number: 0 };

/** Migrates the schema if allowed. Resolves to the names of the applied migrations. @throws StoreError */
export async function prepareSchema(connection: Connection, mayMigrate: boolean): Promise<readonly string[]> {
  const migrations = readMigrations('postgres');
  const { number } = await readSchema(connection);
  if (number > migrations.length) {
    throw new StoreError(
      'unavailable',
      `the database has schema ${number}, this Leasehold knows up to ${migrations.length}: start the Leasehold that wrote it`,
    );
  }
  if (number > 0) await assertSchemaColumns(connection, number);
  if (number === migrations.length) return [];
  if (!mayMigrate) {
    const has = number === 0 ? 'no Leasehold schema' : `schema ${number}`;
    throw new StoreError(
      'unavailable',
      `the database has ${has}, this Leasehold needs ${migrations.length}, and --no-migrate is given: run leasehold schema with the role that owns it`,
    );
  }
  return migrate(connection, migrations);
}

async function assertSchemaColumns(connection: Connection, number: number): Promise<void> {
  const rows = await connection.query`
    SELECT c.relname || '.' || a.attname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE n.nspname = 'leasehold'`;
  assertColumns(
    rows.map(({ name }) => String(name)),
    number,
  );
}

function pendingScripts(schema: Schema): readonly { readonly name: string; readonly sql: string }[] {
  return toScripts(schema, readMigrations('postgres'));
}

function toScripts(schema: Schema, migrations: readonly Migration[]) {
  return migrations.slice(schema.number).map(({ number, name, sql }) => {
    // WHY conditional: IF NOT EXISTS requires the CREATE privilege even if the schema exists.
    const isFirst = number === schema.number + 1;
    const script = [
      'BEGIN;',
      TAKE_LOCK,
      ...(isFirst && !schema.isNamed ? ['CREATE SCHEMA IF NOT EXISTS leasehold;'] : []),
      ...(isFirst && !schema.isRecorded ? [RECORD] : []),
      'SET LOCAL search_path = leasehold;',
      `INSERT INTO migrations (number, name) VALUES (${number}, '${name}');`,
      sql.trim(),
      // The first batch reports an unresponsive standby.
      `SET LOCAL statement_timeout = '10s';`,
      'COMMIT;',
    ];
    return { name, sql: script.join('\n') };
  });
}

const RECORD = `CREATE TABLE IF NOT EXISTS leasehold.migrations (
  number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());`;

/**
 * Statements that take an advisory lock until the end of the transaction, without a time-out. WHY not a session lock: a
 * suspended node would keep it, whereas a transaction that was sent as one script ends without its sender.
 */
const TAKE_LOCK = `SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}, 0); SET LOCAL lock_timeout = '5s';`;

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
        // Continue only if another node has applied it; otherwise a retry would fail again.
        const isOvertaken =
          sqlStateOf(error) === UNIQUE_VIOLATION && (await readSchema(connection)).number > schema.number;
        if (!isOvertaken) throw error;
      }
    }
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StoreError(
      'unavailable',
      'the database has no Leasehold schema, or an old one, and this role may not create it: run leasehold schema with a role that may; see docs/cluster.md',
      { cause: error },
    );
  } finally {
    // Discards the session settings.
    connection.close();
  }
}

/** @throws StoreError if the role may not read the schema */
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
  const [row] = await connection.query`SELECT coalesce(max(number), 0) AS number FROM leasehold.migrations`;
  return { isNamed: true, isRecorded, number: Number(row?.['number']) };
}

export interface SchemaReport {
  /** The last applied migration. */
  readonly number: number;
  /** The names of the migrations that this call applied. */
  readonly done: readonly string[];
}

/** `grantee` is the name of the server's role, or null. @throws StoreError */
export async function updateSchema(address: PostgresAddress, grantee: string | null): Promise<SchemaReport> {
  const pinned = await pinHost(address);
  // A migration closes its connection.
  const done = await onConnection(pinned, (connection) => prepareSchema(connection, true));
  return onConnection(pinned, async (connection) => {
    if (grantee !== null) await grant(connection, grantee);
    const { number } = await readSchema(connection);
    return { number, done };
  });
}

/** The statements of `updateSchema`: the pending ones of a database, or all without one. */
export async function printSchema(address: PostgresAddress | null, grantee: string | null): Promise<string> {
  const schema = address === null ? NO_SCHEMA : await onConnection(await pinHost(address), readSchema);
  const grants = grantee === null ? [] : [toGrantScript(grantee)];
  return [...pendingScripts(schema).map(({ name, sql }) => `-- ${name}\n${sql}`), ...grants].join('\n\n');
}

/** One transaction, so that running nodes never lack a privilege. */
function toGrantScript(grantee: string): string {
  const role = toIdentifier(grantee);
  if (role === null) throw new StoreError('unavailable', 'the role to grant to must have a name of 1 to 63 bytes');
  return `BEGIN;\n${TAKE_LOCK}\n${grantsFor(role)}\nCOMMIT;`;
}

async function grant(connection: Connection, grantee: string): Promise<void> {
  const script = toGrantScript(grantee);
  // WHY: revoking the privileges of the owner would make the next migration fail.
  const owned = await connection.query`
    SELECT 1 FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
    WHERE c.relnamespace = 'leasehold'::regnamespace AND r.rolname = ${grantee} LIMIT 1`;
  if (owned.length > 0) {
    throw new StoreError('unavailable', `the role ${grantee} owns the schema: the server must use another role`);
  }
  try {
    await connection.script(script);
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StoreError(
      'unavailable',
      'this role may not grant privileges: run leasehold schema with the role that owns the schema',
      {
        cause: error,
      },
    );
  }
  await assertPrivileges(connection, grantee);
}

async function onConnection<T>(address: PostgresAddress, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await Connection.open(address, 'reading');
  try {
    return await work(connection);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    connection.close();
  }
}
