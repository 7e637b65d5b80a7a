/** Deletes rows that ended long ago, in bounded steps, on one node at a time, concurrently with batches. */
import { ENDED_LEASE_RETENTION_MS } from '../../core/lease.ts';
import type { Row } from '../decode-rows.ts';
import { BULK_REVOCATION_TTL_MS, ENDED_SESSION_RETENTION_MS, type SweepResult } from '../store.ts';
import { foldAccessCounts } from './access-counts.ts';
import type { Connection } from './connection.ts';
import { EPOCHS_RETAINED } from './control-changes.ts';

/** Advisory lock key: 'swee'. */
const SWEEP_LOCK = 0x73776565;

/** Deletes nothing while another node sweeps. */
export async function sweep(connection: Connection, now: number, limit: number): Promise<SweepResult> {
  const isCounted = await foldAccessCounts(connection);
  try {
    const [, , [lock]] = await Promise.all([
      connection.query`BEGIN`,
      connection.query`UPDATE vault SET high_water_time = ${now} WHERE high_water_time < ${now}`,
      connection.query`SELECT pg_try_advisory_xact_lock(${SWEEP_LOCK}::integer, 0) AS is_mine`,
    ]);
    const isMine = lock?.['is_mine'] === true;
    const removed = isMine ? await remove(connection, now, limit) : 0;
    await connection.query`COMMIT`;
    return { removed, isDone: isCounted && removed < limit };
  } catch (error) {
    await connection.query`ROLLBACK`.catch(() => connection.close());
    throw error;
  }
}

async function remove(connection: Connection, now: number, limit: number): Promise<number> {
  let left = limit;
  for (const removal of [
    removeSessions,
    removeChallenges,
    removeIdempotencyRecords,
    removeBulkRevocations,
    removeLeases,
    pruneRemovals,
  ]) {
    if (left > 0) left -= Number((await removal(connection, now, left))[0]?.['n'] ?? 0);
  }
  return limit - left;
}

type Removal = (connection: Connection, now: number, limit: number) => Promise<readonly Row[]>;

const removeSessions: Removal = (connection, now, limit) => connection.query`
  WITH gone AS (DELETE FROM sessions WHERE token_hash IN (
    SELECT token_hash FROM sessions WHERE expires_at < ${now - ENDED_SESSION_RETENTION_MS} ORDER BY expires_at LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;

const removeChallenges: Removal = (connection, now, limit) => connection.query`
  WITH gone AS (DELETE FROM spent_challenges WHERE id IN (
    SELECT id FROM spent_challenges WHERE expires_at < ${now} ORDER BY expires_at LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;

const removeIdempotencyRecords: Removal = (connection, now, limit) => connection.query`
  WITH gone AS (DELETE FROM idempotency_records WHERE id IN (
    SELECT id FROM idempotency_records WHERE expires_at < ${now} ORDER BY expires_at LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;

/** `revoked_at` never decreases along `seq`: if the oldest rows are not due, none is. */
const removeBulkRevocations: Removal = (connection, now, limit) => connection.query`
  WITH gone AS (DELETE FROM bulk_revocations WHERE revoked_at < ${now - BULK_REVOCATION_TTL_MS} AND seq IN (
    SELECT seq FROM bulk_revocations ORDER BY seq LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;

/** Keeps leases that are not yet in the access counts. */
const removeLeases: Removal = (connection, now, limit) => connection.query`
  WITH gone AS (DELETE FROM leases WHERE seq IN (
    SELECT seq FROM leases WHERE expires_at <= ${now - ENDED_LEASE_RETENTION_MS}
      AND seq <= (SELECT through_seq FROM access_count_progress) ORDER BY expires_at LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;

const pruneRemovals: Removal = (connection, _now, limit) => connection.query`
  WITH gone AS (DELETE FROM control_removals WHERE (epoch, agent_id, name) IN (
    SELECT epoch, agent_id, name FROM control_removals
    WHERE epoch < (SELECT epoch FROM audit_head) - ${EPOCHS_RETAINED}::bigint ORDER BY epoch LIMIT ${limit}) RETURNING 1)
  SELECT count(*) AS n FROM gone`;
