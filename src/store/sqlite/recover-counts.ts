/** Counts the retrievals that only the log holds, because the previous process had their counts in memory. */
import type { DatabaseSync } from 'node:sqlite';
import { scanUntilDeadline } from './time-slice.ts';

/** A count row, and the last entry that it includes. */
interface Counted {
  readonly countId: number;
  readonly throughSeq: number;
}

/** Fewer than for other rows: each may read a different page. */
const WINDOW_ENTRIES = 32;

/** Counts retrievals after `throughSeq` up to `lastSeq`, step by step, by `count_id`. */
export function* uncountedRetrievals(
  database: DatabaseSync,
  throughSeq: number,
  lastSeq: number,
): Generator<void, Map<number, number>> {
  const windowEnd = database.prepare(
    'SELECT seq FROM audit_entries WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT 1 OFFSET ? - 1',
  );
  const retrieved = database.prepare(
    `SELECT seq, resource FROM audit_entries WHERE seq BETWEEN ? AND ?
       AND event_type = 'credential.retrieve' AND result = 'allowed'`,
  );
  const countAt = database.prepare(
    // Clamped to safe integers, in case of alterations.
    `SELECT min(max(count_id, 0), ${Number.MAX_SAFE_INTEGER}) AS count_id,
       min(max(through_seq, 0), ${Number.MAX_SAFE_INTEGER}) AS through_seq
     FROM access_counts WHERE count_id = (SELECT count_id FROM credentials WHERE path = ?)`,
  );
  const find = (path: string): Counted | null => {
    const row = countAt.get(path);
    return row === undefined ? null : { countId: Number(row['count_id']), throughSeq: Number(row['through_seq']) };
  };
  const byPath = new Map<string, Counted | null>();
  const added = new Map<number, number>();
  let place: number | null = throughSeq < lastSeq ? throughSeq + 1 : null;
  while (place !== null) {
    place = scanUntilDeadline(
      place,
      (at) => {
        const end = windowEnd.get(at, lastSeq, WINDOW_ENTRIES)?.['seq'];
        for (const row of retrieved.all(at, typeof end === 'number' ? end : lastSeq)) {
          const path = String(row['resource']);
          let counted = byPath.get(path);
          if (counted === undefined) {
            counted = find(path);
            byPath.set(path, counted);
          }
          // A deleted credential has no row; a later one with the same path counts from its own entry on.
          if (counted === null || Number(row['seq']) <= counted.throughSeq) continue;
          added.set(counted.countId, (added.get(counted.countId) ?? 0) + 1);
        }
        return typeof end === 'number' ? end + 1 : null;
      },
      () => false,
    );
    yield;
  }
  return added;
}
