/** Reads the `vault` row, the keys, the rows held in memory, sessions, and the connected programs. */

import type { AgentId, TokenHash } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { HeldResource, RowOf } from '../core/resources.ts';
import type { StoredKeys, VaultId } from '../vault/keys/keyset.ts';
import type { Lease } from '../vault/leases/lease.ts';
import type { Session } from '../vault/sessions/session.ts';
import type { TargetBinding } from '../vault/use/target.ts';
import { type Dialect, numberIn } from './dialect.ts';
import {
  CREDENTIAL_TARGETS,
  DATA_KEY_SEALS,
  KEY_SLOTS,
  KEYSET,
  LEASES,
  RESOURCE_TABLES,
  SESSIONS,
  TABLES,
} from './schema.ts';
import { type Procedure, raw, type Statement, sql } from './statement.ts';
import type { Authenticated } from './stored-data.ts';
import type { Table } from './table.ts';

/** Null for a new vault. */
export function* readRootKeyCheck(): Procedure<string | null> {
  const [row] = yield sql`SELECT key_check FROM vault`;
  return row === undefined ? null : String(row['key_check']);
}

export function* readStoredKeys(): Procedure<StoredKeys> {
  const [vault] = yield sql`SELECT key_check, vault_id FROM vault`;
  const [keyset] = yield sql`SELECT ${KEYSET.list} FROM keyset`;
  const slots = yield sql`SELECT ${KEY_SLOTS.list} FROM key_slots ORDER BY created_at, id`;
  return {
    keyCheck: vault === undefined ? null : String(vault['key_check']),
    vaultId: vault === undefined ? null : (String(vault['vault_id']) as VaultId),
    keyset: keyset === undefined ? null : KEYSET.decode(keyset),
    slots: slots.map((row) => KEY_SLOTS.decode(row)),
  };
}

export function insertVault(keyCheck: string, vaultId: string, createdAt: number, highWaterTime: number): Statement {
  return sql`INSERT INTO vault (id, key_check, created_at, high_water_time, vault_id)
    VALUES (1, ${keyCheck}, ${createdAt}, ${highWaterTime}, ${vaultId})`;
}

/** The number of values encrypted with each data key, by its id. */
export function* readEncryptionCounts(): Procedure<ReadonlyMap<string, number>> {
  const rows = yield sql`SELECT ${DATA_KEY_SEALS.list} FROM data_key_seals`;
  return new Map(rows.map((row) => DATA_KEY_SEALS.decode(row)).map(({ keyId, seals }) => [keyId, seals]));
}

/** Whether no table has a row: a database with rows but without a vault record was tampered with. */
export function* isEmpty(): Procedure<boolean> {
  for (const { name } of TABLES) {
    const rows = yield sql`SELECT 1 FROM ${raw(name)} LIMIT 1`;
    if (rows.length > 0) return false;
  }
  return true;
}

export function* readHeldRows<R extends HeldResource>(resource: R): Procedure<Authenticated<RowOf[R]>[]> {
  const table: Table<Authenticated<RowOf[R]>> = RESOURCE_TABLES[resource];
  const rows = yield sql`SELECT ${table.list} FROM ${raw(table.name)}`;
  return rows.map((row) => table.decode(row));
}

export function* readSession(tokenHash: TokenHash): Procedure<Authenticated<Session> | null> {
  const [row] = yield sql`SELECT ${SESSIONS.list} FROM sessions WHERE token_hash = ${tokenHash}`;
  return row === undefined ? null : SESSIONS.decode(row);
}

/** The use lease with the token; null if none has it. */
export function* readLeaseOfToken(tokenHash: TokenHash): Procedure<Lease | null> {
  const [row] = yield sql`SELECT ${LEASES.list} FROM effective_leases WHERE token_hash = ${tokenHash}`;
  return row === undefined ? null : LEASES.decode(row);
}

export function* readTargetBinding(path: CredentialPath): Procedure<Authenticated<TargetBinding> | null> {
  const [row] = yield sql`SELECT ${CREDENTIAL_TARGETS.list} FROM credential_targets WHERE path = ${path}`;
  return row === undefined ? null : CREDENTIAL_TARGETS.decode(row);
}

/** Whether a bulk revocation of all leases of the agent exists and its row does not. An altered row counts as a row. */
export function* isDeregistered(agentId: AgentId): Procedure<boolean> {
  const rows = yield sql`SELECT 1 FROM bulk_revocations WHERE agent_id = ${agentId} AND credential_id = ''
    AND NOT EXISTS (SELECT 1 FROM agents WHERE id = ${agentId})`;
  return rows.length > 0;
}

/** The latest `now` of any `sweep`, or 0: what had ended by then must stay ended when a clock is moved back. */
export function* readHighWaterTime(): Procedure<number> {
  const [row] = yield sql`SELECT high_water_time FROM vault`;
  return numberIn(row, 'high_water_time');
}

export interface SessionCursor {
  readonly expiresAt: number;
  readonly tokenHash: string;
}

export interface ListedSession extends SessionCursor {
  readonly agentId: AgentId;
  readonly issuedAt: number;
}

/** The sessions that end after the cursor, in that order; at most `limit` rows, at least 1. */
export function* listSessions(after: SessionCursor, limit: number): Procedure<readonly ListedSession[]> {
  const rows = yield sql`SELECT ${SESSIONS.list} FROM sessions
    WHERE (expires_at, token_hash) > (${after.expiresAt}, ${after.tokenHash})
    ORDER BY expires_at, token_hash LIMIT ${limit}`;
  return rows.map((row) => SESSIONS.decode(row));
}

/** Counts the sessions that end after the cursor, at most `limit`. `last` is null if no session follows. */
export function* countOpenSessions(
  after: SessionCursor,
  limit: number,
): Procedure<{ readonly count: number; readonly last: SessionCursor | null }> {
  const rows = yield sql`SELECT expires_at, token_hash FROM sessions
    WHERE (expires_at, token_hash) > (${after.expiresAt}, ${after.tokenHash})
    ORDER BY expires_at, token_hash LIMIT ${limit}`;
  const last = rows.at(-1);
  if (last === undefined) return { count: 0, last: null };
  return {
    count: rows.length,
    last: { expiresAt: Number(last['expires_at']), tokenHash: String(last['token_hash']) },
  };
}

/** The programs that are connected to the database with names of Leasehold, each once; none if this is the only one. */
export function* readConnectedPrograms({ connectedPrograms }: Dialect): Procedure<string[]> {
  if (connectedPrograms === null) return [];
  const rows = yield connectedPrograms;
  return rows.map(({ name }) => String(name));
}
