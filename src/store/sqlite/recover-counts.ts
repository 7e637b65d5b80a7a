/** Counts the retrievals that only the log holds, because the previous process had their counts in memory. */
import { numberIn } from '../dialect.ts';
import { type Procedure, raw, sql } from '../statement.ts';
import { scanUntilDeadline } from '../time-slice.ts';
import type { Statements } from './statements.ts';

/** A count row, and the last entry that it includes. */
interface Counted {
  readonly countId: number;
  readonly throughSeq: number;
}

/** Fewer than for other rows: each may read a different page. */
const CHUNK_ENTRIES = 32;
/** Clamped to safe integers, in case of alterations. */
const clamped = (column: string) => raw(`min(max(${column}, 0), ${Number.MAX_SAFE_INTEGER}) AS ${column}`);

/** Counts retrievals after `throughSeq` up to `lastSeq`, step by step, by `count_id`. */
export function* uncountedRetrievals(
  statements: Statements,
  throughSeq: number,
  lastSeq: number,
): Generator<void, Map<number, number>> {
  const byPath = new Map<string, Counted | null>();
  const added = new Map<number, number>();
  let cursor: number | null = throughSeq < lastSeq ? throughSeq + 1 : null;
  while (cursor !== null) {
    cursor = statements.run(scanUntilDeadline(cursor, (from) => countChunk(from, lastSeq, byPath, added)));
    yield;
  }
  return added;
}

function* countChunk(
  from: number,
  lastSeq: number,
  byPath: Map<string, Counted | null>,
  added: Map<number, number>,
): Procedure<number | null> {
  const [chunk] = yield sql`SELECT max(seq) AS last, count(*) AS n FROM
    (SELECT seq FROM audit_entries WHERE seq >= ${from} AND seq <= ${lastSeq} ORDER BY seq LIMIT ${CHUNK_ENTRIES}) AS chunk`;
  const last = numberIn(chunk, 'last');
  const retrieved = yield sql`SELECT seq, resource FROM audit_entries WHERE seq >= ${from} AND seq <= ${last}
    AND event_type = 'credential.retrieve' AND result = 'allowed'`;
  for (const row of retrieved) {
    const path = String(row['resource']);
    let counted = byPath.get(path);
    if (counted === undefined) {
      counted = yield* findCount(path);
      byPath.set(path, counted);
    }
    // A deleted credential has no row; a later one with the same path counts from its own entry on.
    if (counted === null || Number(row['seq']) <= counted.throughSeq) continue;
    added.set(counted.countId, (added.get(counted.countId) ?? 0) + 1);
  }
  return numberIn(chunk, 'n') === CHUNK_ENTRIES ? last + 1 : null;
}

function* findCount(path: string): Procedure<Counted | null> {
  const [row] = yield sql`SELECT ${clamped('count_id')}, ${clamped('through_seq')} FROM access_counts
    WHERE count_id = (SELECT count_id FROM credentials WHERE path = ${path})`;
  return row === undefined ? null : { countId: numberIn(row, 'count_id'), throughSeq: numberIn(row, 'through_seq') };
}
