/**
 * Counts accesses and deletes rows that ended long ago, in bounded steps, on one node at a time, concurrently with
 * batches. Each retrieval creates a lease, so that batches count nothing: a count is the stored count plus the
 * retrievals since.
 */
import { ENDED_LEASE_RETENTION_MS } from '../../vault/leases/lease.ts';
import { foldExposures } from '../exposures.ts';
import { type Procedure, sql } from '../statement.ts';
import type { SweepResult } from '../stored-data.ts';
import { deleteRows, type Removal, type SweepBounds, sweepRows } from '../sweep.ts';
import type { Connection } from './connection.ts';
import { EPOCHS_RETAINED } from './loader.ts';

/** Advisory lock key: 'swee'. */
const SWEEP_LOCK = 0x73776565;
/** A deletion of all rows of a sweep takes a few milliseconds of the server; the network may take longer. */
const TIME_MS = 100;
/** Leases that one step folds into the exposures: a few tens of milliseconds of the server. */
const CHUNK_FOLDED = 5000;

/** Leases per step: about ten milliseconds of the server. */
const STEP_LEASES = 20_000;

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
    const bounds = { limit, chunkRows: limit, timeMs: TIME_MS };
    const swept = isMine ? await connection.run(foldAndSweep(now, bounds)) : { removed: 0, isDone: true };
    await connection.query`COMMIT`;
    return { ...swept, isDone: swept.isDone && isCounted };
  } catch (error) {
    await connection.query`ROLLBACK`.catch(() => connection.close());
    throw error;
  }
}

/** ORDER: a lease is deleted only after it has become part of the stored exposures. */
function* foldAndSweep(now: number, bounds: SweepBounds): Procedure<SweepResult> {
  const isFolded = yield* foldExposures(now, CHUNK_FOLDED);
  const swept = yield* sweepRows(now, bounds, isFolded ? [removeLeases, pruneRemovals] : [pruneRemovals]);
  return { ...swept, isDone: swept.isDone && isFolded };
}

/** Keeps leases that are not yet in the access counts. */
const removeLeases: Removal = (now, limit) =>
  deleteRows(
    'leases',
    'seq',
    sql`SELECT seq FROM leases WHERE expires_at <= ${now - ENDED_LEASE_RETENTION_MS}
      AND seq <= (SELECT through_seq FROM access_count_progress) ORDER BY expires_at LIMIT ${limit}`,
  );

const pruneRemovals: Removal = (_now, limit) =>
  deleteRows(
    'control_removals',
    '(epoch, resource, id, name)',
    sql`SELECT epoch, resource, id, name FROM control_removals
      WHERE epoch < (SELECT epoch FROM audit_head) - ${EPOCHS_RETAINED}::bigint ORDER BY epoch LIMIT ${limit}`,
  );

/**
 * Folds a step of leases into the counts. Returns whether none are left. INVARIANT: counts and `through_seq` are
 * committed together, and no lease before a visible one is invisible, because batches commit in order.
 */
async function foldAccessCounts(connection: Connection): Promise<boolean> {
  const [row] = await connection.query`
    WITH place AS MATERIALIZED (
      SELECT through_seq FROM access_count_progress WHERE id = 1 FOR UPDATE SKIP LOCKED
    ), step AS MATERIALIZED (
      SELECT seq, credential_id, kind FROM leases WHERE seq > (SELECT through_seq FROM place) ORDER BY seq LIMIT ${STEP_LEASES}
    ), added AS (
      UPDATE access_counts c SET count = c.count + s.n
      FROM (SELECT credential_id, count(*) AS n FROM step WHERE kind = 'retrieve' GROUP BY credential_id ORDER BY credential_id) s
      WHERE c.credential_id = s.credential_id
    ), moved AS (
      UPDATE access_count_progress SET through_seq = (SELECT max(seq) FROM step) WHERE id = 1 AND EXISTS (SELECT 1 FROM step)
    ) SELECT count(*) AS n FROM step`;
  return row?.['n'] !== STEP_LEASES;
}
