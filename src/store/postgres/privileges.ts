/** What the service's role must be allowed, table by table: nothing more is needed, and the log can only grow. */
import { StoreFailure } from '../port.ts';
import { textArray } from './arrays.ts';
import type { Connection } from './connection.ts';

const NEEDED: Readonly<Record<string, string>> = {
  migrations: 'SELECT',
  vault: 'SELECT, INSERT, UPDATE',
  audit_entries: 'SELECT, INSERT',
  audit_head: 'SELECT, INSERT, UPDATE',
  agents: 'SELECT, INSERT, DELETE',
  policies: 'SELECT, INSERT, DELETE',
  control_removals: 'SELECT, INSERT, DELETE',
  sessions: 'SELECT, INSERT, DELETE',
  spent_challenges: 'SELECT, INSERT, DELETE',
  kept_replies: 'SELECT, INSERT, UPDATE, DELETE',
  credentials: 'SELECT, INSERT, UPDATE, DELETE',
  credential_versions: 'SELECT, INSERT, DELETE',
  access_counts: 'SELECT, INSERT, UPDATE, DELETE',
  access_counted: 'SELECT, INSERT, UPDATE',
  leases: 'SELECT, INSERT, UPDATE, DELETE',
  leases_now: 'SELECT',
  revocation_marks: 'SELECT, INSERT, DELETE',
};

/** The statements that an owner of the schema runs for a role of the service. `role` is an identifier, quoted where it must be. */
export function grantsFor(role: string): string {
  const tables = Object.entries(NEEDED).map(([table, rights]) => `GRANT ${rights} ON leasehold.${table} TO ${role};`);
  return [`GRANT USAGE ON SCHEMA leasehold TO ${role};`, ...tables].join('\n');
}

/** @throws StoreFailure that names what is missing */
export async function assertPrivileges(connection: Connection): Promise<void> {
  const wanted = Object.entries(NEEDED).flatMap(([table, rights]) =>
    rights.split(', ').map((right) => ({ table, right })),
  );
  const rows = await connection.query`
    SELECT current_user AS role, w.name, w.right, has_table_privilege('leasehold.' || w.name, w.right) AS is_granted
    FROM unnest(${textArray(wanted.map(({ table }) => table))}::text[], ${textArray(wanted.map(({ right }) => right))}::text[])
      AS w (name, "right")`;
  const missing = rows.filter((row) => row['is_granted'] !== true);
  const [first] = missing;
  if (first === undefined) return;
  const named = missing.map((row) => `${String(row['right'])} on leasehold.${String(row['name'])}`).join(', ');
  throw new StoreFailure(
    'unavailable',
    `the role ${String(first['role'])} lacks ${named}. docs/operations.md has the statements that grant it`,
  );
}
