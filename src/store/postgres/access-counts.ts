/**
 * Access counts per credential. Each retrieval creates a lease, so that batches count nothing: a count is the stored
 * count plus the retrievals since. One node at a time folds new leases into the stored counts, concurrently with
 * batches.
 */
import type { CredentialId } from '../../core/names.ts';
import type { Connection } from './connection.ts';

/** Leases per step: about ten milliseconds of the server. */
const STEP_LEASES = 20_000;

export async function readAccessCount(connection: Connection, id: CredentialId): Promise<number> {
  const [row] = await connection.query`
    SELECT coalesce((SELECT count FROM access_counts WHERE credential_id = ${id}), 0)
      + (SELECT count(*) FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress) AND credential_id = ${id} AND kind = 'retrieve') AS n,
      EXISTS (SELECT 1 FROM credentials WHERE id = ${id}) AS is_there`;
  return row?.['is_there'] === true ? Number(row['n']) : 0;
}

/**
 * Folds a step of leases into the counts. Returns whether none are left. INVARIANT: counts and `through_seq` are
 * committed together, and no lease before a visible one is invisible, because batches commit in order.
 */
export async function foldAccessCounts(connection: Connection): Promise<boolean> {
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
