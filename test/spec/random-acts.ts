/** Random acts of a writer of the database: a row is replayed, rolled back, changed, copied, swapped or removed. */
import assert from 'node:assert/strict';
import type { Dice } from '../e2e/random.ts';
import type { DatabaseRow } from '../kit/direct-db.ts';
import type { History } from './random-history.ts';
import {
  insert,
  isSameKey,
  type Rows,
  remove,
  replace,
  SEALED,
  subjectOf,
  type TableName,
  update,
} from './raw-rows.ts';

export interface Act {
  readonly name: string;
  readonly sql: string;
  /** Of the rows; one of them has to be named. Empty for the log itself, which is then reported as broken. */
  readonly subjects: readonly string[];
}

/** Columns whose change has an effect; every other one is bookkeeping. */
const COLUMNS: Readonly<Record<TableName, readonly string[]>> = {
  agents: ['id', 'name', 'description', 'public_key', 'registered_at', 'sessions_ended_at', 'former_public_key', 'mac'],
  operators: ['id', 'name', 'description', 'roles', 'public_key', 'added_at', 'sessions_ended_at', 'mac'],
  policies: ['name', 'principal', 'resources', 'actions', 'max_ttl_seconds', 'created_at', 'mac'],
  credentials: ['id', 'path', 'type', 'description', 'created_at', 'updated_at', 'version', 'mac'],
  usages: ['credential_id', 'path', 'targets', 'placement', 'updated_at', 'mac'],
  sessions: ['token_hash', 'agent_id', 'issued_at', 'expires_at', 'ends_at', 'mac'],
  approvals: [
    ...['id', 'nonce', 'agent_id', 'agent_name', 'token_hash', 'action', 'path', 'key', 'basis', 'terms', 'status'],
    ...['answer_by', 'approvers', 'uses_left', 'grant_ends_at', 'expires_at', 'mac'],
  ],
  credential_versions: ['sealed'],
  audit_head: ['seq', 'hmac', 'mac', 'epoch', 'tree', 'control'],
  audit_entries: ['id', 'timestamp', 'agent_name', 'resource', 'hmac', 'subject', 'state'],
};
/** A value that no row has, for the copy of a row under another key. */
const OTHER = {
  agents: { id: '00000000-0000-7000-8000-000000000000', name: 'other' },
  operators: { id: '00000000-0000-7000-8000-000000000000', name: 'operator:other' },
  policies: { name: 'other' },
  credentials: { id: '00000000-0000-7000-8000-000000000000', path: 'a/other' },
  usages: { path: 'a/other' },
  sessions: { token_hash: 'A'.repeat(43) },
  approvals: { id: '01ffffff-0000-7000-8000-000000000000' },
};
const NUMBERS = [0, -1, 1, '9007199254740993', '9223372036854775807'];
const TEXTS = ['', 'other', '*', '[]', '["*"]', '{', "''; --", 'é\u{10ffff}'];

type Tamper = (table: TableName, now: Rows, history: History, dice: Dice) => Act | null;

/** Chosen again until one is possible. */
export function pickAct(table: TableName, now: Rows, history: History, dice: Dice): Act {
  for (let tries = 0; tries < 1000; tries++) {
    const act = dice.pick(ACTS)(table, now, history, dice);
    if (act !== null) return act;
  }
  return assert.fail(`nothing can be done to ${table}`);
}

function act(name: string, table: TableName, rows: readonly DatabaseRow[], sql: string, now: Rows): Act {
  const subjects = rows.flatMap((row) => subjectOf(table, row) ?? subjectsOfValue(table, row, now));
  return { name: `${table}: ${name}`, sql, subjects };
}

function subjectsOfValue(table: TableName, row: DatabaseRow, { credentials }: Rows): string[] {
  if (table !== 'credential_versions') return [];
  const owner = credentials.find(({ id }) => id === row['credential_id']);
  return owner === undefined ? [] : [`credential:${owner['path']} version ${row['version']}`];
}

/** Rows of which the log keeps no state are left out. */
function rowsOf(table: TableName, rows: Rows): readonly DatabaseRow[] {
  return table === 'audit_entries' ? rows[table].filter(({ subject }) => subject !== null) : rows[table];
}

const insertedAgain: Tamper = (table, now, { copies }, dice) => {
  const gone = copies
    .flatMap((copy) => rowsOf(table, copy))
    .filter((row) => !now[table].some((other) => isSameKey(table, row, other)));
  if (gone.length === 0 || !['agents', 'operators', 'policies', 'credentials', 'usages', 'sessions'].includes(table))
    return null;
  const row = dice.pick(gone);
  return act('inserted again', table, [row], replace(table, row), now);
};

const setBack: Tamper = (table, now, { copies }, dice) => {
  const earlier = copies
    .flatMap((copy) => rowsOf(table, copy))
    .filter((row) => now[table].some((other) => isSameKey(table, row, other) && row['mac'] !== other['mac']));
  if (earlier.length === 0) return null;
  const row = dice.pick(earlier);
  return act('rolled back', table, [row], replace(table, row), now);
};

const changed: Tamper = (table, now, _history, dice) => {
  const rows = rowsOf(table, now);
  if (rows.length === 0) return null;
  const row = dice.pick(rows);
  const column = dice.pick(COLUMNS[table]);
  const old = row[column];
  const value = changeOf(old, dice);
  if (value === null || value === old) return null;
  const changedRow = { ...row, [column]: value };
  return act(`${column} changed to ${value}`, table, [row, changedRow], update(table, row, column, value), now);
};

function changeOf(old: unknown, dice: Dice): unknown {
  if (old instanceof Uint8Array) return old.map((byte, index) => (index === old.length - 1 ? byte ^ 1 : byte));
  if (typeof old === 'number') return dice.chance(0.5) ? old + dice.pick([-1, 1, 1000]) : dice.pick(NUMBERS);
  return typeof old === 'string' ? dice.pick([...TEXTS, `${old}x`, old.slice(1)]) : null;
}

const takenAway: Tamper = (table, now, _history, dice) => {
  const rows = rowsOf(table, now).filter((row) => table !== 'credential_versions' || isNewest(row, now));
  if (rows.length === 0) return null;
  const row = dice.pick(rows);
  return act('taken away', table, [row], remove(table, row), now);
};

function isNewest({ credential_id: id, version }: DatabaseRow, { credentials }: Rows): boolean {
  return credentials.some((row) => row['id'] === id && row['version'] === version);
}

const swapped: Tamper = (table, now, _history, dice) => {
  const rows = rowsOf(table, now);
  if (rows.length < 2) return null;
  const [a, b] = [dice.pick(rows), dice.pick(rows)];
  const columns = COLUMNS[table].filter((column) => !['id', 'name', 'path', 'token_hash', 'seq'].includes(column));
  const column = dice.pick(columns);
  if (isSameKey(table, a, b) || isEqual(a[column], b[column])) return null;
  const sql = `${update(table, a, column, b[column])}; ${update(table, b, column, a[column])}`;
  const rowsAfter = [
    { ...a, [column]: b[column] },
    { ...b, [column]: a[column] },
  ];
  return act(`${column} swapped`, table, [a, b, ...rowsAfter], sql, now);
};

const isEqual = (a: unknown, b: unknown): boolean =>
  a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : (a ?? null) === (b ?? null);

const copied: Tamper = (table, now, _history, dice) => {
  if (!(table in OTHER) || now[table].length === 0) return null;
  const row = { ...dice.pick(now[table]), ...OTHER[table as keyof typeof OTHER] };
  return act('copied', table, [row], insert(table, row), now);
};

/** The sealed value of a credential's row, where a store keeps it there. */
const valueChanged: Tamper = (table, now, _history, dice) => {
  const column = table === 'credentials' ? SEALED.find((name) => name === 'newest_sealed') : undefined;
  if (column === undefined) return null;
  const rows = now.credentials.filter((row) => row[column] instanceof Uint8Array);
  if (rows.length === 0) return null;
  const row = dice.pick(rows);
  const value = dice.pick([...rows, row]) === row ? null : changeOf(row[column], dice);
  const { sql, name } = act(`value changed to ${value}`, table, [row], update(table, row, column, value), now);
  return { name, sql, subjects: [`credential:${row['path']} version ${row['version']}`] };
};

const ACTS: readonly Tamper[] = [insertedAgain, setBack, changed, takenAway, swapped, copied, valueChanged];
