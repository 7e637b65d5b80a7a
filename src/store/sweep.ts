/** Deletes rows that ended long ago, bounded in rows and time. Each deletion finds its rows by an index. */
import { type Procedure, raw, type Statement, sql } from './statement.ts';
import {
  BULK_REVOCATION_TTL_MS,
  ENDED_APPROVAL_RETENTION_MS,
  ENDED_SESSION_RETENTION_MS,
  type SweepResult,
} from './stored-data.ts';

/** Deletes up to `limit` rows of a kind. Returns the number of rows; null if none is due. */
export type Removal = (now: number, limit: number) => Procedure<number | null>;

export interface SweepBounds {
  readonly limit: number;
  /** Rows of the tables here that are deleted between two checks of the clock. */
  readonly chunkRows: number;
  readonly timeMs: number;
}

/** `others` are the removals of one store. */
export function* sweepRows(now: number, bounds: SweepBounds, others: readonly Removal[]): Procedure<SweepResult> {
  const { limit, chunkRows, timeMs } = bounds;
  const endsAt = performance.now() + timeMs;
  let removed = 0;
  const inChunks = REMOVALS.map(
    (removal): Removal =>
      (at, most) =>
        removal(at, Math.min(most, chunkRows)),
  );
  for (const removal of [...inChunks, ...others]) {
    for (;;) {
      if (removed >= limit || performance.now() >= endsAt) return { removed, isDone: false };
      const count = yield* removal(now, limit - removed);
      if (count === null) break;
      removed += count;
    }
  }
  return { removed, isDone: true };
}

/** Deletes the rows whose key the subquery selects. */
export function* deleteRows(table: string, key: string, selected: Statement): Procedure<number | null> {
  const rows = yield sql`DELETE FROM ${raw(table)} WHERE ${raw(key)} IN (${selected}) RETURNING 1 AS deleted`;
  return rows.length === 0 ? null : rows.length;
}

function removeExpired(table: string, key: string, retentionMs: number): Removal {
  return (now, limit) =>
    deleteRows(
      table,
      key,
      sql`SELECT ${raw(key)} FROM ${raw(table)} WHERE expires_at < ${now - retentionMs} ORDER BY expires_at LIMIT ${limit}`,
    );
}

/** `revoked_at` never decreases along `seq`: if the oldest rows are not due, none is. */
const removeBulkRevocations: Removal = (now, limit) =>
  deleteRows(
    'bulk_revocations',
    'seq',
    sql`SELECT seq FROM (SELECT seq, revoked_at FROM bulk_revocations WHERE seq > 0 ORDER BY seq LIMIT ${limit}) AS oldest
      WHERE revoked_at < ${now - BULK_REVOCATION_TTL_MS}`,
  );

const REMOVALS: readonly Removal[] = [
  removeExpired('sessions', 'token_hash', ENDED_SESSION_RETENTION_MS),
  removeExpired('spent_challenges', 'id', 0),
  removeExpired('idempotency_records', 'id', 0),
  removeExpired('approvals', 'id', ENDED_APPROVAL_RETENTION_MS),
  removeExpired('approval_requests', 'id', ENDED_APPROVAL_RETENTION_MS),
  removeBulkRevocations,
];
