/** Reads the audit log, its head record, its tree and its checkpoints. */

import { type AuditEntry, toEntry } from '../vault/audit/audit-entry.ts';
import type { StoredCheckpoint, StoredTreeNode } from '../vault/audit/proofs.ts';
import { type Dialect, numberIn } from './dialect.ts';
import { AUDIT_ENTRIES, CHECKPOINTS } from './schema.ts';
import {
  and,
  type CountStep,
  type ListStep,
  type Procedure,
  type Row,
  raw,
  type Statement,
  scanUntilDeadline,
  sql,
} from './statement.ts';
import type { Head, LastEntry } from './stored-data.ts';

export interface AuditFilter {
  readonly agentName: string | null;
  /** A glob: `*` matches any characters, `?` one. */
  readonly resource: string | null;
  readonly action: string | null;
  readonly eventType: string | null;
  readonly result: string | null;
}

/** A range of sequence numbers, both inclusive, and the order of its entries. */
export interface EntryRange {
  readonly from: number;
  readonly to: number;
  readonly order: 'asc' | 'desc';
}

export function toHead(row: Row | undefined): Head | null {
  return row === undefined || row['seq'] === null
    ? null
    : {
        seq: Number(row['seq']),
        hmac: String(row['hmac']),
        mac: String(row['mac']),
        epoch: Number(row['epoch']),
        tree: String(row['tree']),
        control: String(row['control']),
      };
}

/** Decodes the columns of `LAST_ENTRY`; null if the audit log is empty. */
export function toLastEntry(row: Row | undefined): LastEntry | null {
  const { last_seq: seq, last_hmac: hmac, last_timestamp: timestamp } = row ?? {};
  return typeof seq === 'number' ? { seq, hmac: String(hmac), timestamp: String(timestamp) } : null;
}

export const LAST_ENTRY = raw(
  '(SELECT seq AS last_seq, hmac AS last_hmac, timestamp AS last_timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1)',
);

/**
 * The head record (null if deleted), the last entry of the audit log (null if the audit log is empty), and the highest
 * sequence number of an entry, a lease or a bulk revocation (0 if none exists): in one statement, and so from one
 * snapshot.
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
  return rows.map(decodeEntry);
}

/** The MACs of entries, for the tree, in order. WHY one row: drivers take longer for a row than for a MAC. */
export function* readMacs(fromSeq: number, toSeq: number, limit: number): Procedure<{ seq: number; hmac: string }[]> {
  const [row] = yield sql`SELECT string_agg(seq || ' ' || replace(hmac, ',', ''), ',' ORDER BY seq) AS macs
    FROM (SELECT seq, hmac FROM audit_entries
      WHERE seq >= ${fromSeq} AND seq <= ${toSeq} ORDER BY seq LIMIT ${limit}) AS page`;
  return parseNumbered(row?.['macs']).map(([seq, hmac]) => ({ seq, hmac }));
}

/** The parts of a text such as `1 abc,2 def`, whose texts have no comma; none for null. */
function parseNumbered(text: unknown): (readonly [number: number, text: string])[] {
  if (typeof text !== 'string') return [];
  return text.split(',').map((part) => {
    const end = part.indexOf(' ');
    return [Number(part.slice(0, end)), part.slice(end + 1)];
  });
}

const decodeEntry = (row: Row): AuditEntry => toEntry(Object.values(AUDIT_ENTRIES.decode(row)));

/** Whether an entry has a sequence number below 1. The server writes none, and no read of a range shows one. */
export function* hasEntryBeforeFirst(): Procedure<boolean> {
  const rows = yield sql`SELECT 1 FROM audit_entries WHERE seq < 1 LIMIT 1`;
  return rows.length > 0;
}

/** The matching entries of a range, in its order, at most `limit`, which is at least 1. */
export function* listEntries(
  dialect: Dialect,
  filter: AuditFilter,
  range: EntryRange,
  limit: number,
): Procedure<ListStep<AuditEntry, number>> {
  const rows: AuditEntry[] = [];
  const next = yield* scanMatches(
    dialect,
    filter,
    range,
    function* ({ chunk, matching, order }, nextChunk) {
      // WHY the numbers first: the index has the columns that a filter compares, so few entries are read as a whole.
      const found = yield sql`SELECT ${AUDIT_ENTRIES.list} FROM audit_entries
        WHERE ${chunk} AND seq IN (SELECT seq ${matching} ${order} LIMIT ${limit - rows.length}) ${order}`;
      for (const row of found) rows.push(decodeEntry(row));
      return rows.length < limit ? nextChunk : afterSeq(range, rows.at(-1)?.seq ?? 0);
    },
    () => rows.length >= limit,
  );
  return { rows, next };
}

/** Counts the matching entries of a range, in its order, and stops after `atMost`, which is at least 1. */
export function* countEntries(
  dialect: Dialect,
  filter: AuditFilter,
  range: EntryRange,
  atMost: number,
): Procedure<CountStep<number>> {
  let count = 0;
  const next = yield* scanMatches(
    dialect,
    filter,
    range,
    function* ({ matching, order }, nextChunk) {
      const [end] = yield sql`SELECT count(*) AS n, ${raw(range.order === 'asc' ? 'max' : 'min')}(seq) AS last
        FROM (SELECT seq ${matching} ${order} LIMIT ${atMost - count}) AS counted`;
      count += numberIn(end, 'n');
      return count < atMost ? nextChunk : afterSeq(range, numberIn(end, 'last'));
    },
    () => count >= atMost,
  );
  return { count, next };
}

interface Chunk {
  readonly chunk: Statement;
  readonly matching: Statement;
  readonly order: Statement;
}

/** Visits chunks of a range in its order. `visit` receives the first entry after the chunk; null at the end. */
function* scanMatches(
  dialect: Dialect,
  filter: AuditFilter,
  range: EntryRange,
  visit: (chunk: Chunk, next: number | null) => Procedure<number | null>,
  isEnough: () => boolean,
): Procedure<number | null> {
  // No entry has U+0000, which PostgreSQL cannot receive.
  if (Object.values(filter).some((text: string | null) => text?.includes('\0'))) return null;
  const { order: direction, from, to } = range;
  const [start, end] = direction === 'asc' ? [from, to] : [to, from];
  const order = raw(direction === 'asc' ? 'ORDER BY seq ASC' : 'ORDER BY seq DESC');
  const between = (first: number, last: number): Statement =>
    direction === 'asc' ? sql`seq >= ${first} AND seq <= ${last}` : sql`seq >= ${last} AND seq <= ${first}`;
  const conditions = conditionsOf(dialect, filter);
  const comparisons = comparisonsPerCharacter(filter.resource);
  return yield* scanUntilDeadline(
    start,
    function* (first) {
      const rest = sql`FROM audit_entries WHERE ${between(first, end)} ${order}`;
      const size = yield* chunkSize(dialect, comparisons, rest);
      const [found] = yield sql`SELECT seq ${rest} LIMIT 1 OFFSET ${size - 1}`;
      const last = found === undefined ? end : numberIn(found, 'seq');
      const chunk = between(first, last);
      const matching = sql`FROM audit_entries WHERE ${and(chunk, ...conditions)}`;
      return yield* visit({ chunk, matching, order }, last === end ? null : afterSeq(range, last));
    },
    isEnough,
  );
}

/** Characters of the glob with which each character of a resource is compared in the worst case. */
function comparisonsPerCharacter(glob: string | null): number {
  if (glob === null) return 0;
  const star = glob.indexOf('*');
  return star === -1 ? 1 : Math.max(1, glob.length - star - 1);
}

/** The usual length of a resource, or more. */
const USUAL_LENGTH = 64;

/** Number of entries to compare at once: one or more, and fewer where their resources are long. */
function* chunkSize(
  { chunkEntries, chunkComparisons }: Dialect,
  comparisons: number,
  rest: Statement,
): Procedure<number> {
  if (comparisons === 0) return chunkEntries;
  const fitting = (length: number): number => Math.max(1, Math.floor(chunkComparisons / (comparisons * length)));
  const size = Math.min(chunkEntries, fitting(USUAL_LENGTH));
  const [longest] = yield sql`SELECT max(length(resource)) AS n FROM (SELECT resource ${rest} LIMIT ${size}) AS chunk`;
  return Math.min(size, fitting(Math.max(1, numberIn(longest, 'n'))));
}

const afterSeq = ({ order }: EntryRange, seq: number): number => (order === 'asc' ? seq + 1 : seq - 1);

function conditionsOf(
  { matchesGlob }: Dialect,
  { agentName, resource, action, eventType, result }: AuditFilter,
): Statement[] {
  const columns = { agent_name: agentName, action, event_type: eventType, result };
  const conditions = Object.entries(columns).flatMap(([column, value]) =>
    value === null ? [] : [sql`${raw(column)} = ${value}`],
  );
  if (resource === null) return conditions;
  // Comparing the beginning is faster than a glob, and true for few entries.
  const [beginning = ''] = resource.split(/[*?]/, 1);
  if (beginning !== '') conditions.push(sql`resource >= ${beginning}`, sql`resource < ${`${beginning}\u{10ffff}`}`);
  return [...conditions, matchesGlob(resource)];
}

/**
 * The sequence number of the first entry at or after the timestamp, or null. Searches by bisection: timestamps never
 * decrease along the audit log.
 */
export function* findSeqAt(timestamp: string): Procedure<number | null> {
  let low = 1;
  let high = (yield* readLastSeq()) + 1;
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

/** The stored nodes of a level with `from` ≤ position < `to`, in order. */
export function* readTreeNodes(level: number, from: number, to: number): Procedure<StoredTreeNode[]> {
  const [row] =
    yield sql`SELECT string_agg(position || ' ' || replace(hash, ',', ''), ',' ORDER BY position) AS nodes FROM audit_tree
    WHERE level = ${level} AND position >= ${from} AND position < ${to}`;
  return parseNumbered(row?.['nodes']).map(([position, hash]) => ({ level, position, hash }));
}

/** Adds the checkpoint unless one of that generation and size exists. */
export function insertCheckpoint({ generation, size, signedAt, note }: StoredCheckpoint): Statement {
  return sql`INSERT INTO checkpoints (generation, size, signed_at, note)
    VALUES (${generation}, ${size}, ${signedAt}, ${note}) ON CONFLICT (generation, size) DO NOTHING`;
}

/** The newest checkpoint of the newest generation; null if none was signed. */
export function* readNewestCheckpoint(): Procedure<StoredCheckpoint | null> {
  const [row] = yield sql`SELECT ${CHECKPOINTS.list} FROM checkpoints ORDER BY generation DESC, size DESC LIMIT 1`;
  return row === undefined ? null : CHECKPOINTS.decode(row);
}

/** The checkpoint of that generation and size; null if none was signed. */
export function* readCheckpoint(generation: number, size: number): Procedure<StoredCheckpoint | null> {
  const [row] = yield sql`SELECT ${CHECKPOINTS.list} FROM checkpoints
    WHERE generation = ${generation} AND size = ${size}`;
  return row === undefined ? null : CHECKPOINTS.decode(row);
}

export function* readPosition(name: string): Procedure<number> {
  const [row] = yield sql`SELECT seq FROM log_streams WHERE name = ${name}`;
  return numberIn(row, 'seq');
}

export function* savePosition(name: string, seq: number): Procedure<void> {
  yield sql`INSERT INTO log_streams (name, seq) VALUES (${name}, ${seq})
    ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`;
}

/** The sequence number of the last entry; 0 if the audit log is empty. */
export function* readLastSeq(): Procedure<number> {
  const [row] = yield sql`SELECT max(seq) AS seq FROM audit_entries`;
  return numberIn(row, 'seq');
}
