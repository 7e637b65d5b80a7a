/** The `vault` row and other state of the whole database. */
import type { Head } from '../store.ts';
import type { Connection } from './connection.ts';

export async function readRootKeyCheck(connection: Connection): Promise<string | null> {
  const [row] = await connection.query`SELECT key_check FROM vault`;
  return row === undefined ? null : String(row['key_check']);
}

export async function initialise(
  connection: Connection,
  keyCheck: string,
  { seq, hmac, mac, epoch }: Head,
  now: number,
): Promise<void> {
  await connection.query`
    WITH made AS (INSERT INTO vault (id, key_check, created_at, high_water_time) VALUES (1, ${keyCheck}, ${now}, ${now})),
      counted AS (INSERT INTO access_count_progress (id, through_seq) VALUES (1, 0))
    INSERT INTO audit_head (id, seq, hmac, mac, epoch) VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch})`;
}

export async function isEmpty(connection: Connection): Promise<boolean> {
  const [row] = await connection.query`
    SELECT EXISTS (SELECT 1 FROM audit_entries) OR EXISTS (SELECT 1 FROM agents) OR EXISTS (SELECT 1 FROM policies)
      OR EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM credentials) OR EXISTS (SELECT 1 FROM leases)
      OR EXISTS (SELECT 1 FROM bulk_revocations) AS is_used`;
  return row?.['is_used'] === false;
}

export async function readEpoch(connection: Connection): Promise<number> {
  const [row] = await connection.query`SELECT epoch FROM audit_head`;
  return Number(row?.['epoch'] ?? 0);
}

export async function readTime(connection: Connection): Promise<number> {
  const [row] = await connection.query`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`;
  return Number(row?.['now']);
}

export async function readHighWaterTime(connection: Connection): Promise<number> {
  const [row] = await connection.query`SELECT high_water_time FROM vault`;
  return Number(row?.['high_water_time'] ?? 0);
}
