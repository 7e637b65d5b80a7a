/** Lists and counts leases, newest first, in steps that each read a bounded number of leases. */
import type { ActorName, AgentId } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import { type BulkRevocation, ENDED_LEASE_RETENTION_MS, type Lease, type LeaseStatus } from '../vault/leases/lease.ts';
import { type Dialect, type LeaseChunk, numberIn } from './dialect.ts';
import { LEASES } from './schema.ts';
import {
  and,
  type CountStep,
  type ListStep,
  type Procedure,
  raw,
  type Statement,
  scanUntilDeadline,
  sql,
} from './statement.ts';

export interface LeaseQuery {
  readonly agentId: AgentId | null;
  readonly agentName: string | null;
  readonly path: CredentialPath | null;
  readonly status: LeaseStatus | null;
  /** Milliseconds; decides which leases are active, and which ended too long ago to be listed. */
  readonly now: number;
}

/** The leases that a bulk revocation applies to; `agentName` is the name of its agent, or null if it has no agent. */
export interface RevokedLeases {
  readonly revocation: BulkRevocation;
  readonly agentName: ActorName | null;
}

/** Leases are listed newest first; the cursor is the sequence number of the last one read. */
export const NEWEST_LEASE = Number.MAX_SAFE_INTEGER;

interface Selection {
  readonly from: 'leases' | 'effective_leases';
  readonly agentName: string | null;
  readonly where: Statement;
}

/** The leases before `beforeSeq`, newest first; at most `limit` rows, at least 1. */
export function* listLeases(
  dialect: Dialect,
  query: LeaseQuery,
  beforeSeq: number,
  limit: number,
): Procedure<ListStep<Lease, number>> {
  const selection = toSelection(query);
  const rows: Lease[] = [];
  const next = yield* scanUntilDeadline(
    beforeSeq,
    function* (before) {
      const chunk = yield* dialect.findLeaseChunk(query.agentName, before);
      if (chunk === null) return null;
      const found = yield sql`SELECT ${LEASES.list} ${inChunk(selection, chunk)}
        ORDER BY seq DESC LIMIT ${limit - rows.length}`;
      for (const row of found) rows.push(LEASES.decode(row));
      return rows.length < limit ? chunk.next : (rows.at(-1)?.seq ?? null);
    },
    () => rows.length >= limit,
  );
  return { rows, next };
}

/** Counts the leases before `beforeSeq`, and stops after `atMost`, which is at least 1. */
export function countLeases(
  dialect: Dialect,
  query: LeaseQuery,
  beforeSeq: number,
  atMost: number,
): Procedure<CountStep<number>> {
  return count(dialect, toSelection(query), beforeSeq, atMost);
}

/** Active leases by kind, and the oldest of them; `oldestSeq` is null if none is active. */
export interface ActiveLeases {
  readonly retrieve: number;
  readonly use: number;
  readonly oldestSeq: number | null;
  readonly next: number | null;
}

/** Counts the leases active at `now` with `fromSeq` ≤ seq < `beforeSeq`, newest first. */
export function* countActiveLeases(
  dialect: Dialect,
  now: number,
  fromSeq: number,
  beforeSeq: number,
): Procedure<ActiveLeases> {
  const selection: Selection = { from: 'effective_leases', agentName: null, where: hasStatus('active', now) };
  let [retrieve, use] = [0, 0];
  let oldestSeq: number | null = null;
  const next = yield* scanUntilDeadline(beforeSeq, function* (before) {
    const chunk = yield* dialect.findLeaseChunk(null, before);
    if (chunk === null || chunk.before <= fromSeq) return null;
    const rows = yield sql`SELECT l.kind AS kind, count(*) AS n, min(l.seq) AS oldest
      ${inChunk(selection, { ...chunk, from: Math.max(chunk.from, fromSeq) })} GROUP BY l.kind`;
    for (const row of rows) {
      if (row['kind'] === 'use') use += numberIn(row, 'n');
      else retrieve += numberIn(row, 'n');
      oldestSeq = Math.min(oldestSeq ?? Number.MAX_SAFE_INTEGER, numberIn(row, 'oldest'));
    }
    return chunk.next !== null && chunk.next > fromSeq ? chunk.next : null;
  });
  return { retrieve, use, oldestSeq, next };
}

/**
 * Counts the leases that the committed bulk revocation ended: those of its kind that were active and that no earlier
 * revocation ended. The result never changes.
 */
export function countRevokedBy(
  dialect: Dialect,
  { revocation, agentName }: RevokedLeases,
  beforeSeq: number,
): Procedure<CountStep<number>> {
  const { seq, agentId, credentialId, kind, revokedAt } = revocation;
  const notRevoked = (scope: string): Statement => sql`NOT EXISTS (SELECT 1 FROM bulk_revocations b
    WHERE ${raw(scope)} AND b.kind IN ('', l.kind) AND b.seq > l.seq AND b.seq < ${seq})`;
  const where = and(
    sql`l.revoked_at IS NULL AND l.expires_at > ${revokedAt}`,
    ...equal({ agent_name: agentName, agent_id: agentId, credential_id: credentialId, kind }),
    notRevoked(`b.agent_id = l.agent_id AND b.credential_id = ''`),
    notRevoked('b.agent_id = l.agent_id AND b.credential_id = l.credential_id'),
    notRevoked(`b.agent_id = '' AND b.credential_id = l.credential_id`),
    notRevoked(`b.agent_id = '' AND b.credential_id = ''`),
  );
  const before = Math.min(beforeSeq, seq);
  return count(dialect, { from: 'leases', agentName, where }, before, Number.MAX_SAFE_INTEGER);
}

function* count(
  dialect: Dialect,
  selection: Selection,
  beforeSeq: number,
  atMost: number,
): Procedure<CountStep<number>> {
  let n = 0;
  const next = yield* scanUntilDeadline(
    beforeSeq,
    function* (before) {
      const chunk = yield* dialect.findLeaseChunk(selection.agentName, before);
      if (chunk === null) return null;
      const [row] = yield sql`SELECT count(*) AS n, min(seq) AS last FROM
        (SELECT l.seq ${inChunk(selection, chunk)} ORDER BY l.seq DESC LIMIT ${atMost - n}) AS counted`;
      n += numberIn(row, 'n');
      return n < atMost ? chunk.next : numberIn(row, 'last');
    },
    () => n >= atMost,
  );
  return { count: n, next };
}

function inChunk({ from, where }: Selection, chunk: LeaseChunk): Statement {
  return sql`FROM ${raw(from)} l WHERE l.seq >= ${chunk.from} AND l.seq < ${chunk.before} AND ${where}`;
}

function equal(columns: Readonly<Record<string, string | null>>): Statement[] {
  return Object.entries(columns).flatMap(([column, value]) =>
    value === null ? [] : [sql`l.${raw(column)} = ${value}`],
  );
}

function toSelection({ agentId, agentName, path, status, now }: LeaseQuery): Selection {
  const columns = equal({ agent_name: agentName, agent_id: agentId, path });
  return { from: 'effective_leases', agentName, where: and(hasStatus(status, now), ...columns) };
}

function hasStatus(status: LeaseStatus | null, now: number): Statement {
  // A lease is listed while active and for 7 days after its end. A recent one needs no check of its end.
  const listedAfter = now - ENDED_LEASE_RETENTION_MS;
  const isListed = sql`(l.issued_at > ${listedAfter}
    OR (l.expires_at > ${listedAfter} AND coalesce(l.revoked_at, l.expires_at) > ${listedAfter}))`;
  switch (status) {
    case null:
      return isListed;
    case 'active':
      return sql`l.expires_at > ${now} AND l.revoked_at IS NULL`;
    case 'expired':
      return sql`l.expires_at <= ${now} AND ${isListed} AND l.revoked_at IS NULL`;
    case 'revoked':
      return sql`${isListed} AND l.revoked_at IS NOT NULL`;
  }
}
