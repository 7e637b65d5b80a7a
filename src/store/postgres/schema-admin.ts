/** Commands for the owner of the schema: migrate it, and grant privileges to the server's role. */
import { StoreError } from '../errors.ts';
import type { PostgresAddress } from './address.ts';
import { Connection } from './connection.ts';
import { sqlStateOf, toStoreError } from './errors.ts';
import { pinHost } from './hosts.ts';
import { NO_SCHEMA, pendingScripts, prepareSchema, readSchema, takeLock } from './migrate.ts';
import { assertPrivileges, grantsFor, toIdentifier } from './privileges.ts';

const INSUFFICIENT_PRIVILEGE = '42501';

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
  return `BEGIN;\n${takeLock()}\n${grantsFor(role)}\nCOMMIT;`;
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
