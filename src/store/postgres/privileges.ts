/** The minimum privileges of the server's role, per table. It cannot change or delete audit entries. */
import { StoreError } from '../errors.ts';
import type { Connection } from './connection.ts';
import { textArray } from './dialect.ts';

/** WHY UPDATE on audit_head and access_count_progress: SELECT FOR UPDATE requires it. */
export const REQUIRED_PRIVILEGES: Readonly<Record<string, string>> = {
  migrations: 'SELECT',
  vault: 'SELECT, INSERT, UPDATE',
  audit_entries: 'SELECT, INSERT',
  audit_head: 'SELECT, INSERT, UPDATE',
  audit_tree: 'SELECT, INSERT, UPDATE',
  checkpoints: 'SELECT, INSERT',
  agents: 'SELECT, INSERT, DELETE',
  operators: 'SELECT, INSERT, DELETE',
  policies: 'SELECT, INSERT, DELETE',
  control_removals: 'SELECT, INSERT, DELETE',
  sessions: 'SELECT, INSERT, UPDATE, DELETE',
  spent_challenges: 'SELECT, INSERT, DELETE',
  idempotency_records: 'SELECT, INSERT, UPDATE, DELETE',
  credentials: 'SELECT, INSERT, UPDATE, DELETE',
  credential_versions: 'SELECT, INSERT, UPDATE, DELETE',
  access_counts: 'SELECT, INSERT, UPDATE, DELETE',
  access_count_progress: 'SELECT, INSERT, UPDATE',
  leases: 'SELECT, INSERT, UPDATE, DELETE',
  effective_leases: 'SELECT',
  credential_targets: 'SELECT, INSERT, UPDATE, DELETE',
  approvals: 'SELECT, INSERT, UPDATE, DELETE',
  approval_requests: 'SELECT, INSERT, DELETE',
  bulk_revocations: 'SELECT, INSERT, DELETE',
  exposures: 'SELECT, INSERT, UPDATE',
  exposure_progress: 'SELECT, INSERT, UPDATE',
  keyset: 'SELECT, INSERT, UPDATE',
  key_slots: 'SELECT, INSERT, DELETE',
  data_key_seals: 'SELECT, INSERT, UPDATE',
  log_streams: 'SELECT, INSERT, UPDATE',
};

/** PostgreSQL truncates longer names, which could then name another role. */
const MAX_NAME_BYTES = 63;

/** Quotes a role name as an SQL identifier; null if it is not a valid name. */
export function toIdentifier(name: string): string | null {
  const isFit = name !== '' && Buffer.byteLength(name) <= MAX_NAME_BYTES && !name.includes('\0');
  return isFit ? `"${name.replaceAll('"', '""')}"` : null;
}

/** Grants the role (a quoted identifier) exactly the required privileges and revokes all others on the schema. */
export function grantsFor(role: string): string {
  const tables = Object.entries(REQUIRED_PRIVILEGES).map(
    ([table, rights]) => `GRANT ${rights} ON leasehold.${table} TO ${role};`,
  );
  return [
    `REVOKE ALL ON SCHEMA leasehold FROM ${role};`,
    `REVOKE ALL ON ALL TABLES IN SCHEMA leasehold FROM ${role};`,
    `GRANT USAGE ON SCHEMA leasehold TO ${role};`,
    ...tables,
  ].join('\n');
}

/**
 * Reads only the catalogs. `role` is a name, or null for the connected role. @throws StoreError that names every
 * missing privilege
 */
export async function assertPrivileges(connection: Connection, role: string | null = null): Promise<void> {
  const wanted = Object.entries(REQUIRED_PRIVILEGES).flatMap(([table, rights]) =>
    rights.split(', ').map((right) => ({ table, right })),
  );
  const rows = await connection.query`
    SELECT coalesce(${role}::name, current_user) AS role, w.name, w.right,
      has_schema_privilege(coalesce(${role}::name, current_user), n.oid, 'USAGE') AS may_enter,
      has_table_privilege(coalesce(${role}::name, current_user), c.oid, w.right) AS is_granted
    FROM unnest(${textArray(wanted.map(({ table }) => table))}::text[], ${textArray(wanted.map(({ right }) => right))}::text[])
      WITH ORDINALITY AS w (name, "right", place)
    LEFT JOIN pg_namespace n ON n.nspname = 'leasehold'
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name ORDER BY w.place`;
  const [first] = rows;
  const lacking = [
    ...(first?.['may_enter'] === false ? ['USAGE on schema leasehold'] : []),
    ...rows
      .filter((row) => row['is_granted'] === false)
      .map((row) => `${String(row['right'])} on leasehold.${String(row['name'])}`),
  ];
  if (lacking.length > 0) {
    const name = String(first?.['role']);
    throw new StoreError(
      'unavailable',
      `the role ${name} lacks ${lacking.join(', ')}: the role that owns the schema grants it with leasehold schema --grant ${name}`,
    );
  }
  const missing = new Set(
    rows.filter((row) => row['is_granted'] === null).map((row) => `leasehold.${String(row['name'])}`),
  );
  if (missing.size > 0) {
    throw new StoreError(
      'unavailable',
      `the database lacks ${[...missing].join(', ')}, which its schema once had: it was altered outside. Restore a backup`,
    );
  }
}
