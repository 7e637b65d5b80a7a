/** Reads the audit log and its head record. */
import type { AuditEntry } from '../../core/audit.ts';
import type { Row } from '../decode-rows.ts';
import type { AuditFilter, Matches } from '../queries.ts';
import type { Head, LastEntry } from '../store.ts';
import type { Connection } from './connection.ts';
import { toHead, toLastEntry } from './transaction.ts';

/** Entries per step: a few milliseconds of the server. */
const STEP_ENTRIES = 5000;

/** In one statement, which reads one snapshot. */
export async function readHead(
  connection: Connection,
): Promise<{ head: Head | null; last: LastEntry | null; highestSeq: number }> {
  const [row = {}] = await connection.query`
    SELECT h.seq, h.hmac, h.mac, h.epoch, e.seq AS last_seq, e.hmac AS last_hmac, e.timestamp AS last_timestamp,
      greatest(e.seq, (SELECT max(seq) FROM leases), (SELECT max(seq) FROM bulk_revocations), 0) AS highest_seq
    FROM (VALUES (1)) AS one
    LEFT JOIN audit_head h ON true
    LEFT JOIN (SELECT seq, hmac, timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1) e ON true`;
  return {
    head: toHead(row['seq'] === null ? undefined : row),
    last: toLastEntry(row),
    highestSeq: Number(row['highest_seq'] ?? 0),
  };
}

export async function readEntries(
  connection: Connection,
  fromSeq: number,
  toSeq: number,
  limit: number,
): Promise<AuditEntry[]> {
  const rows = await connection.query`
    SELECT seq, id, timestamp, event_type, agent_name, resource, action, result, policy_name, lease_id, reason, request_id,
      remote_addr, hmac
    FROM audit_entries WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq LIMIT ${limit}`;
  return rows.map(toEntry);
}

export async function hasEntryBeforeFirst(connection: Connection): Promise<boolean> {
  const rows = await connection.query`SELECT 1 FROM audit_entries WHERE seq < 1 LIMIT 1`;
  return rows.length > 0;
}

const orNull = (value: unknown): string | null => (value === null ? null : String(value));

function toEntry(row: Row): AuditEntry {
  return {
    seq: Number(row['seq']),
    id: String(row['id']),
    timestamp: String(row['timestamp']),
    event_type: String(row['event_type']),
    agent_name: String(row['agent_name']),
    resource: String(row['resource']),
    action: String(row['action']),
    result: String(row['result']),
    policy_name: orNull(row['policy_name']),
    lease_id: orNull(row['lease_id']),
    reason: orNull(row['reason']),
    request_id: orNull(row['request_id']),
    remote_addr: orNull(row['remote_addr']),
    hmac: String(row['hmac']),
  };
}

/** Converts a glob (`*`, `?`) to a LIKE pattern. */
const toLike = (glob: string): string =>
  glob
    .replaceAll(/[\\%_]/g, '\\$&')
    .replaceAll(/\*+/g, '%')
    .replaceAll('?', '_');

export async function matchEntries(
  connection: Connection,
  filter: AuditFilter,
  fromSeq: number,
  toSeq: number,
  order: 'asc' | 'desc',
): Promise<Matches> {
  const { agentName, resource, action, eventType, result } = filter;
  // PostgreSQL cannot store or receive U+0000, so nothing matches.
  if ([agentName, resource, action, eventType, result].some((text) => text?.includes('\0'))) {
    return { seqs: [], next: null };
  }
  const isRising = order === 'asc';
  const [step] = isRising
    ? await connection.query`
        SELECT max(seq) AS last, count(*) AS n FROM (
          SELECT seq FROM audit_entries WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq LIMIT ${STEP_ENTRIES}) AS step`
    : await connection.query`
        SELECT min(seq) AS last, count(*) AS n FROM (
          SELECT seq FROM audit_entries WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq DESC LIMIT ${STEP_ENTRIES}) AS step`;
  if (typeof step?.['last'] !== 'number') return { seqs: [], next: null };
  const { last } = step;
  const [low, high] = isRising ? [fromSeq, last] : [last, toSeq];
  const like = resource === null ? null : toLike(resource);
  const rows = await connection.query`
    SELECT seq FROM audit_entries WHERE seq >= ${low} AND seq <= ${high}
      AND (${agentName}::text IS NULL OR agent_name = ${agentName})
      AND (${action}::text IS NULL OR action = ${action})
      AND (${eventType}::text IS NULL OR event_type = ${eventType})
      AND (${result}::text IS NULL OR result = ${result})
      AND (${like}::text IS NULL OR resource LIKE ${like})
    ORDER BY seq`;
  const seqs = rows.map(({ seq }) => Number(seq));
  const isOver = step['n'] !== STEP_ENTRIES;
  return { seqs: isRising ? seqs : seqs.reverse(), next: isOver ? null : last + (isRising ? 1 : -1) };
}

/** Bisection: timestamps never decrease along the log. */
export async function findSeqAt(connection: Connection, timestamp: string): Promise<number | null> {
  const [end] = await connection.query`SELECT max(seq) AS seq FROM audit_entries`;
  let low = 1;
  let high = Number(end?.['seq'] ?? 0) + 1;
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const [row] = await connection.query`
      SELECT seq, timestamp FROM audit_entries WHERE seq >= ${middle} ORDER BY seq LIMIT 1`;
    if (row === undefined || String(row['timestamp']) >= timestamp) high = middle;
    else low = Number(row['seq']) + 1;
  }
  const [found] = await connection.query`SELECT seq FROM audit_entries WHERE seq >= ${low} ORDER BY seq LIMIT 1`;
  return found === undefined ? null : Number(found['seq']);
}
