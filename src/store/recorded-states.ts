/**
 * What the log records about rows: the newest state of each, and walks through both in steps. SOURCE: docs/formats.md,
 * "State in the log".
 */
import { HELD_RESOURCES, KEYSET_SUBJECT, RESOURCES, type RecordedResource, subjectPrefix } from '../core/resources.ts';
import { toColumn } from '../engine/resource.ts';
import { REMOVED } from '../vault/audit/audit-entry.ts';
import { RESOURCE_TABLES } from './schema.ts';
import { type ListStep, type Procedure, type Row, raw, type Statement, sql } from './statement.ts';
import type { Authenticated } from './stored-data.ts';
import type { Table } from './table.ts';

/** The state of the newest entry with the subject; null if none has it. */
export const newestState = (subject: Statement): Statement =>
  sql`(SELECT state FROM audit_entries WHERE subject = ${subject} ORDER BY seq DESC LIMIT 1)`;

export function* readNewestState(subject: string): Procedure<string | null> {
  const [row] = yield sql`SELECT ${newestState(sql`${subject}`)} AS state`;
  return typeof row?.['state'] === 'string' ? row['state'] : null;
}

/** The states of agents, operators, policies and the keyset, by subject. Removed ones are omitted. */
export function* readControlStates(): Procedure<Map<string, string>> {
  const states = new Map<string, string>();
  const ranges = HELD_RESOURCES.map((resource) => [`${resource}:`, `${resource};`] as const);
  for (const [from, before] of [...ranges, [KEYSET_SUBJECT, `${KEYSET_SUBJECT}:`] as const]) {
    const rows = yield sql`SELECT newest.subject, e.state
      FROM (SELECT subject, max(seq) AS seq FROM audit_entries
        WHERE subject >= ${from} AND subject < ${before} GROUP BY subject) AS newest
      JOIN audit_entries e ON e.subject = newest.subject AND e.seq = newest.seq WHERE e.state <> ${REMOVED}`;
    for (const [subject, state] of toStates(rows)) states.set(subject, state);
  }
  return states;
}

export function toStates(rows: readonly Row[]): [subject: string, state: string][] {
  return rows.flatMap(({ subject, state }) => (state === null ? [] : [[String(subject), String(state)]]));
}

/** A row and what the log records about it; null if no entry has its subject. */
export interface RecordedRow {
  readonly row: Authenticated<object>;
  readonly state: string | null;
}

/** The subject of a row as SQL over its columns, which `table` also has. */
export function subjectIn(resource: RecordedResource, table: string = RESOURCE_TABLES[resource].name): Statement {
  const prefix = subjectPrefix(resource);
  const { fields } = RESOURCES[resource].subject;
  const name = fields.map((field) => nameIn(resource, `${table}.${toColumn(field)}`)).join(" || ':' || ");
  return raw(prefix === '' ? name : `'${prefix}' || ${name}`);
}

function nameIn(resource: RecordedResource, column: string): string {
  return 'isCaseless' in RESOURCES[resource].subject ? `lower(${column})` : column;
}

/** The state of the newest entry about a row, as SQL over its columns. */
function stateIn(resource: RecordedResource): Statement {
  const state = newestState(subjectIn(resource));
  if (resource !== 'targets') return state;
  // The removal of a credential includes its targets, and they are those of one credential.
  return sql`CASE WHEN ${newestState(raw("'credential:' || credential_targets.path"))} = ${REMOVED}
      OR EXISTS (SELECT 1 FROM credentials c WHERE c.path = credential_targets.path AND c.id <> credential_targets.credential_id)
    THEN ${REMOVED} ELSE ${state} END`;
}

/** Times of this century have 13 digits. */
const TIME_LENGTH = 13;

/** The condition that a row is that of the subject of the entry `e`. */
function isRowOfEntry(resource: RecordedResource): Statement {
  const { fields } = RESOURCES[resource].subject;
  // Each field before the last one is a time.
  const before = subjectPrefix(resource).length + (fields.length - 1) * (TIME_LENGTH + 1);
  const column = `${RESOURCE_TABLES[resource].name}.${toColumn(fields.at(-1) ?? '')}`;
  return raw(`${nameIn(resource, column)} = substr(e.subject, ${before + 1})`);
}

/** The rows of a kind after the key (null: from the first), in its order, at most `limit`. */
export function* scanRows(
  kind: RecordedResource,
  after: string | null,
  limit: number,
): Procedure<ListStep<RecordedRow, string>> {
  const table: Table<Authenticated<object>> = RESOURCE_TABLES[kind];
  const [key = ''] = table.key;
  const isAfter = after === null ? raw('true') : sql`${raw(key)} > ${after}`;
  const found = yield sql`SELECT ${table.list}, ${stateIn(kind)} AS recorded_state FROM ${raw(table.name)}
    WHERE ${isAfter} ORDER BY ${raw(key)} LIMIT ${limit}`;
  const rows = found.map((row) => ({
    row: table.decode(row),
    state: typeof row['recorded_state'] === 'string' ? row['recorded_state'] : null,
  }));
  return { rows, next: nextKey(found, key, after, limit) };
}

/**
 * Where the next step continues; null at the end. Text that is not UTF-8, which only an altered row has, is read as
 * another key: a step that would not advance ends the scan.
 */
export function nextKey(rows: readonly Row[], column: string, after: string | null, limit: number): string | null {
  const last = rows.at(-1)?.[column];
  if (rows.length < limit || typeof last !== 'string') return null;
  return after === null || Buffer.compare(Buffer.from(last), Buffer.from(after)) > 0 ? last : null;
}

export interface SubjectStep {
  /** The subjects whose newest entry records a MAC, and which have no row. */
  readonly missing: readonly string[];
  readonly checked: number;
  /** The last subject of the step; null at the end. */
  readonly next: string | null;
}

/** The subjects of the kind after the given one. At most `limit` are checked. */
export function* scanSubjects(kind: RecordedResource, after: string, limit: number): Procedure<SubjectStep> {
  const rows = yield sql`SELECT e.subject, e.state <> ${REMOVED}
      AND NOT EXISTS (SELECT 1 FROM ${raw(RESOURCE_TABLES[kind].name)} WHERE ${isRowOfEntry(kind)}) ${withoutCredential(kind)} AS is_missing
    FROM (SELECT subject, max(seq) AS seq FROM audit_entries
      WHERE subject > ${after} AND subject < ${`${kind};`} GROUP BY subject ORDER BY subject LIMIT ${limit}) AS newest
    JOIN audit_entries e ON e.subject = newest.subject AND e.seq = newest.seq ORDER BY e.subject`;
  const missing = rows.filter((row) => Boolean(row['is_missing'])).map((row) => String(row['subject']));
  return { missing, checked: rows.length, next: nextKey(rows, 'subject', after, limit) };
}

/** The removal of a credential includes its targets. */
function withoutCredential(kind: RecordedResource): Statement {
  return kind !== 'targets'
    ? raw('')
    : sql`AND NOT EXISTS (SELECT 1 FROM audit_entries c
        WHERE c.subject = 'credential:' || substr(e.subject, 9) AND c.seq > e.seq AND c.state = ${REMOVED})`;
}
