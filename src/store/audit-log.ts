/** Reads the audit log and its head record. */
import { type AuditEntry, hasState, hasUse } from '../core/audit.ts';
import { AUDIT_ENTRIES } from './audit-tables.ts';
import { type Dialect, numberIn } from './dialect.ts';
import type { AuditFilter, Matches } from './queries.ts';
import { and, type Procedure, type Row, raw, sql } from './statement.ts';
import type { Head, LastEntry } from './store.ts';
import { scanUntilDeadline } from './time-slice.ts';

export function toHead(row: Row | undefined): Head | null {
  return row === undefined || row['seq'] === null
    ? null
    : {
        seq: Number(row['seq']),
        hmac: String(row['hmac']),
        mac: String(row['mac']),
        epoch: Number(row['epoch']),
        tree: toText(row['tree']),
        control: toText(row['control']),
      };
}

function toText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Decodes the columns of `LAST_ENTRY`; null if the log is empty. */
export function toLastEntry(row: Row | undefined): LastEntry | null {
  const { last_seq: seq, last_hmac: hmac, last_timestamp: timestamp } = row ?? {};
  return typeof seq === 'number' ? { seq, hmac: String(hmac), timestamp: String(timestamp) } : null;
}

export const LAST_ENTRY = raw(
  '(SELECT seq AS last_seq, hmac AS last_hmac, timestamp AS last_timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1)',
);

/**
 * The head record (null if deleted), the last entry of the log (null if the log is empty), and the highest sequence
 * number of an entry, a lease or a bulk revocation (0 if none exists): in one statement, and so from one snapshot.
 */
export function* readHead(): Procedure<{ head: Head | null; last: LastEntry | null; highestSeq: number }> {
  const [row] = yield sql`
    SELECT head.seq, head.hmac, head.mac, head.epoch, head.tree, head.control, last_seq, last_hmac, last_timestamp,
      (SELECT max(seq) FROM leases) AS lease_seq, (SELECT max(seq) FROM bulk_revocations) AS revocation_seq
    FROM (SELECT 1 AS one) AS one LEFT JOIN audit_head AS head ON head.id = one.one
    LEFT JOIN ${LAST_ENTRY} AS last ON one.one = 1`;
  const highest = ['last_seq', 'lease_seq', 'revocation_seq'].map((column) => numberIn(row, column));
  return { head: toHead(row), last: toLastEntry(row), highestSeq: Math.max(...highest) };
}

/** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
export function* readEntries(fromSeq: number, toSeq: number, limit: number): Procedure<AuditEntry[]> {
  const rows = yield sql`SELECT ${AUDIT_ENTRIES.list} FROM audit_entries
    WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq LIMIT ${limit}`;
  return rows.map((row) => withoutEmpty(AUDIT_ENTRIES.decode(row)));
}

/** The MACs of entries, for the tree, in order. WHY one row: drivers take longer for a row than for a MAC. */
export function* readMacs(fromSeq: number, toSeq: number, limit: number): Procedure<{ seq: number; hmac: string }[]> {
  const [row] = yield sql`SELECT string_agg(seq || ' ' || replace(hmac, ',', ''), ',' ORDER BY seq) AS macs
    FROM (SELECT seq, hmac FROM audit_entries
      WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq LIMIT ${limit}) AS page`;
  return parseNumbered(row?.['macs']).map(([seq, hmac]) => ({ seq, hmac }));
}

/** The parts of a text such as `1 abc,2 def`, whose texts have no comma; none for null. */
export function parseNumbered(text: unknown): (readonly [number: number, text: string])[] {
  if (typeof text !== 'string') return [];
  return text.split(',').map((part) => {
    const end = part.indexOf(' ');
    return [Number(part.slice(0, end)), part.slice(end + 1)];
  });
}

/** An entry has the fields of a use or of a state only if any of them is set. */
function withoutEmpty(entry: AuditEntry): AuditEntry {
  const { method, host, target_path, status, bytes_in, bytes_out, redactions, ended, subject, state, ...others } =
    entry;
  return {
    ...others,
    ...(hasUse(entry) ? { method, host, target_path, status, bytes_in, bytes_out, redactions, ended } : {}),
    ...(hasState(entry) ? { subject, state } : {}),
  };
}

/** Whether an entry has a sequence number below 1. The server writes none, and no read of a range shows one. */
export function* hasEntryBeforeFirst(): Procedure<boolean> {
  const rows = yield sql`SELECT 1 FROM audit_entries WHERE seq < 1 LIMIT 1`;
  return rows.length > 0;
}

/** A step through the range in that order. */
export function* matchEntries(
  { chunkEntries, matchesGlob }: Dialect,
  { agentName, resource, action, eventType, result }: AuditFilter,
  fromSeq: number,
  toSeq: number,
  order: 'asc' | 'desc',
): Procedure<Matches> {
  const columns = { agent_name: agentName, action, event_type: eventType, result };
  // PostgreSQL cannot receive U+0000, and no entry contains it.
  if ([...Object.values(columns), resource].some((text) => text?.includes('\0'))) return { seqs: [], next: null };
  const conditions = Object.entries(columns).flatMap(([column, value]) =>
    value === null ? [] : [sql`${raw(column)} = ${value}`],
  );
  if (resource !== null) conditions.push(matchesGlob(resource));
  const seqs: number[] = [];
  const isAscending = order === 'asc';
  const [end, direction] = isAscending ? [raw('max(seq)'), raw('ASC')] : [raw('min(seq)'), raw('DESC')];
  const next = yield* scanUntilDeadline(isAscending ? fromSeq : toSeq, function* (cursor) {
    const inRange = isAscending
      ? sql`seq >= ${cursor} AND seq <= ${toSeq}`
      : sql`seq >= ${fromSeq} AND seq <= ${cursor}`;
    const [chunk] = yield sql`SELECT ${end} AS last, count(*) AS n FROM
      (SELECT seq FROM audit_entries WHERE ${inRange} ORDER BY seq ${direction} LIMIT ${chunkEntries}) AS chunk`;
    if (typeof chunk?.['last'] !== 'number') return null;
    const { last } = chunk;
    const inChunk = isAscending ? sql`seq >= ${cursor} AND seq <= ${last}` : sql`seq >= ${last} AND seq <= ${cursor}`;
    const rows =
      yield sql`SELECT seq FROM audit_entries WHERE ${and(inChunk, ...conditions)} ORDER BY seq ${direction}`;
    for (const { seq } of rows) seqs.push(Number(seq));
    return numberIn(chunk, 'n') < chunkEntries ? null : Number(last) + (isAscending ? 1 : -1);
  });
  return { seqs, next };
}

/**
 * The sequence number of the first entry at or after the timestamp, or null. Searches by bisection: timestamps never
 * decrease along the log.
 */
export function* findSeqAt(timestamp: string): Procedure<number | null> {
  const [end] = yield sql`SELECT max(seq) AS seq FROM audit_entries`;
  let low = 1;
  let high = numberIn(end, 'seq') + 1;
  let found: number | null = null;
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const [row] = yield sql`SELECT seq, timestamp FROM audit_entries WHERE seq >= ${middle} ORDER BY seq LIMIT 1`;
    if (row === undefined) high = middle;
    else if (String(row['timestamp']) < timestamp) low = Number(row['seq']) + 1;
    else {
      high = middle;
      found = Number(row['seq']);
    }
  }
  return found;
}
