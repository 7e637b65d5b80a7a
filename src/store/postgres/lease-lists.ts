/** Lists and counts leases, newest first, in steps that each read a bounded number of leases. */
import { ENDED_LEASE_RETENTION_MS, type Lease } from '../../core/lease.ts';
import { type Row, toLease } from '../decode-rows.ts';
import type { CountStep, LeaseQuery, ListStep, RevokedLeases } from '../queries.ts';
import type { Connection } from './connection.ts';

/** Leases per step: a few milliseconds of the server. */
const STEP_LEASES = 5000;

/** The last leases before a sequence number, of one agent name or of all. */
interface Step {
  readonly from: number;
  readonly isFull: boolean;
}

export async function listLeases(
  connection: Connection,
  query: LeaseQuery,
  beforeSeq: number,
  limit: number,
): Promise<ListStep<Lease, number>> {
  const step = await findChunk(connection, query.agentName, beforeSeq);
  if (step === null) return { rows: [], next: null };
  const rows = await selectMatching(connection, query, step, beforeSeq, limit);
  const leases = rows.map(toLease);
  const next = leases.length === limit ? (leases.at(-1)?.seq ?? null) : step.isFull ? step.from : null;
  return { rows: leases, next };
}

export async function countLeases(
  connection: Connection,
  query: LeaseQuery,
  beforeSeq: number,
  atMost: number,
): Promise<CountStep<number>> {
  const step = await findChunk(connection, query.agentName, beforeSeq);
  if (step === null) return { count: 0, next: null };
  const rows = await selectMatching(connection, query, step, beforeSeq, Math.min(atMost, STEP_LEASES));
  const isEnough = rows.length === atMost;
  return { count: rows.length, next: isEnough ? Number(rows.at(-1)?.['seq']) : step.isFull ? step.from : null };
}

export async function countRevokedBy(
  connection: Connection,
  { mark, agentName }: RevokedLeases,
  beforeSeq: number,
): Promise<CountStep<number>> {
  const before = Math.min(beforeSeq, mark.seq);
  const step = await findChunk(connection, agentName, before);
  if (step === null) return { count: 0, next: null };
  const { seq, agentId, credentialId, revokedAt } = mark;
  const [row] = await connection.query`
    SELECT count(*) AS n FROM leases l WHERE l.seq >= ${step.from} AND l.seq < ${before}
      AND (${agentName}::text IS NULL OR l.agent_name = ${agentName})
      AND (${agentId}::text IS NULL OR l.agent_id = ${agentId})
      AND (${credentialId}::text IS NULL OR l.credential_id = ${credentialId})
      AND l.revoked_at IS NULL AND l.expires_at > ${revokedAt}
      AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
        WHERE m.agent_id = l.agent_id AND m.credential_id = '' AND m.seq > l.seq AND m.seq < ${seq})
      AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
        WHERE m.agent_id = l.agent_id AND m.credential_id = l.credential_id AND m.seq > l.seq AND m.seq < ${seq})
      AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
        WHERE m.agent_id = '' AND m.credential_id = l.credential_id AND m.seq > l.seq AND m.seq < ${seq})`;
  return { count: Number(row?.['n'] ?? 0), next: step.isFull ? step.from : null };
}

async function findChunk(connection: Connection, agentName: string | null, beforeSeq: number): Promise<Step | null> {
  const [row] = await connection.query`
    SELECT min(seq) AS first, count(*) AS n FROM (
      SELECT seq FROM leases WHERE seq < ${beforeSeq} AND (${agentName}::text IS NULL OR agent_name = ${agentName})
      ORDER BY seq DESC LIMIT ${STEP_LEASES}) AS step`;
  if (typeof row?.['first'] !== 'number') return null;
  return { from: row['first'], isFull: row['n'] === STEP_LEASES };
}

/** A lease is listed while active and for 7 days after its end. */
function selectMatching(
  connection: Connection,
  { agentId, agentName, path, status, now }: LeaseQuery,
  { from }: Step,
  beforeSeq: number,
  limit: number,
): Promise<readonly Row[]> {
  const listedAfter = now - ENDED_LEASE_RETENTION_MS;
  return connection.query`
    SELECT seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at, expires_at, revoked_at FROM effective_leases l WHERE l.seq >= ${from} AND l.seq < ${beforeSeq}
      AND (${agentName}::text IS NULL OR l.agent_name = ${agentName})
      AND (${agentId}::text IS NULL OR l.agent_id = ${agentId})
      AND (${path}::text IS NULL OR l.path = ${path})
      AND least(l.expires_at, l.revoked_at) > ${listedAfter}
      AND CASE ${status ?? 'any'}::text
        WHEN 'active' THEN l.expires_at > ${now} AND l.revoked_at IS NULL
        WHEN 'expired' THEN l.expires_at <= ${now} AND l.revoked_at IS NULL
        WHEN 'revoked' THEN l.revoked_at IS NOT NULL
        ELSE true END
    ORDER BY l.seq DESC LIMIT ${limit}`;
}
