/**
 * How often credentials were retrieved. Each retrieval leaves a lease, so that no turn has anything to count: a count is what was
 * added up so far, and the leases behind that. One node at a time adds up, beside all turns.
 */
import type { CredentialId } from '../../core/names.ts';
import type { Connection } from './connection.ts';

/** Leases added up at a time: some ten milliseconds of the server. */
const STEP_LEASES = 20_000;

export async function readAccessCount(connection: Connection, id: CredentialId): Promise<number> {
  const [row] = await connection.query`
    SELECT coalesce((SELECT count FROM access_counts WHERE credential_id = ${id}), 0)
      + (SELECT count(*) FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress) AND credential_id = ${id}) AS n,
      EXISTS (SELECT 1 FROM credentials WHERE id = ${id}) AS is_there`;
  return row?.['is_there'] === true ? Number(row['n']) : 0;
}

/**
 * Adds up a step of the leases that nobody has added up. INVARIANT: what is added is committed with the ordinal through which it
 * is, and all leases up to the last that is seen are seen, because turns commit in their order. Whether there were none left.
 */
export async function foldAccessCounts(connection: Connection): Promise<boolean> {
  const [row] = await connection.query`
    WITH place AS MATERIALIZED (
      SELECT through_seq FROM access_count_progress WHERE id = 1 FOR UPDATE SKIP LOCKED
    ), step AS MATERIALIZED (
      SELECT seq, credential_id FROM leases WHERE seq > (SELECT through_seq FROM place) ORDER BY seq LIMIT ${STEP_LEASES}
    ), added AS (
      UPDATE access_counts c SET count = c.count + s.n
      FROM (SELECT credential_id, count(*) AS n FROM step GROUP BY credential_id ORDER BY credential_id) s
      WHERE c.credential_id = s.credential_id
    ), moved AS (
      UPDATE access_count_progress SET through_seq = (SELECT max(seq) FROM step) WHERE id = 1 AND EXISTS (SELECT 1 FROM step)
    ) SELECT count(*) AS n FROM step`;
  return row?.['n'] !== STEP_LEASES;
}
