/** Reads the columns of log entries that the lists of the console filter and count by, in steps. */
import type { Dialect } from './dialect.ts';
import { type Procedure, sql } from './statement.ts';
import { scanUntilDeadline } from './time-slice.ts';

/** What the filters of the log compare with a text. */
export interface EntryKind {
  readonly eventType: string;
  readonly action: string;
  readonly agentName: string;
  readonly result: string;
}

export interface EntryColumns {
  readonly seq: number;
  /** In the log's format, unless it was altered. */
  readonly timestamp: string;
  readonly resource: string;
  readonly kind: EntryKind;
}

/** `next`: where the next step begins; null at the end of the range. */
export interface ColumnStep {
  readonly rows: readonly EntryColumns[];
  readonly next: number | null;
}

/** The rows of a step are in no particular order. */
export function* readColumns(
  { chunkRows }: Dialect,
  fromSeq: number,
  toSeq: number,
  order: 'asc' | 'desc',
): Procedure<ColumnStep> {
  const rows: EntryColumns[] = [];
  const next = yield* scanUntilDeadline(order === 'asc' ? fromSeq : toSeq, function* (cursor) {
    const [low, high] =
      order === 'asc'
        ? [cursor, Math.min(toSeq, cursor + chunkRows - 1)]
        : [Math.max(fromSeq, cursor - chunkRows + 1), cursor];
    const found = yield sql`SELECT seq, timestamp, event_type, agent_name, resource, action, result FROM audit_entries
      WHERE seq >= ${low} AND seq <= ${high}`;
    for (const { seq, timestamp, event_type, agent_name, resource, action, result } of found) {
      const kind = {
        eventType: String(event_type),
        action: String(action),
        agentName: String(agent_name),
        result: String(result),
      };
      rows.push({ seq: Number(seq), timestamp: String(timestamp), resource: String(resource), kind });
    }
    if (order === 'asc') return high < toSeq ? high + 1 : null;
    return low > fromSeq ? low - 1 : null;
  });
  return { rows, next };
}

/** A caller and what it was denied. */
export interface DeniedAccess {
  readonly agentName: string;
  readonly resource: string;
  readonly count: number;
  /** In the log's format. */
  readonly firstAt: string;
}

/** Counts the denials of a range by caller and resource, newest first. A pair may be in several steps. */
export function* countDenials(
  { chunkRows }: Dialect,
  fromSeq: number,
  toSeq: number,
): Procedure<{ readonly rows: readonly DeniedAccess[]; readonly next: number | null }> {
  const rows: DeniedAccess[] = [];
  const next = yield* scanUntilDeadline(toSeq, function* (cursor) {
    const low = Math.max(fromSeq, cursor - chunkRows + 1);
    const found = yield sql`SELECT agent_name, resource, count(*) AS n, min(timestamp) AS first_at FROM audit_entries
      WHERE seq >= ${low} AND seq <= ${cursor} AND result = 'denied' GROUP BY agent_name, resource`;
    for (const { agent_name, resource, n, first_at } of found) {
      rows.push({
        agentName: String(agent_name),
        resource: String(resource),
        count: Number(n),
        firstAt: String(first_at),
      });
    }
    return low > fromSeq ? low - 1 : null;
  });
  return { rows, next };
}
