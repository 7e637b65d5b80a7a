/**
 * The frequent queries. SQLite returns their rows as arrays, which cost half as much as objects. Entries are decoded
 * here by position, at a tenth of the cost of `Table.decode`.
 */
import { type AuditEntry, hasState, hasUse, USE_FIELDS } from '../../core/audit.ts';
import { AUDIT_ENTRIES, CREDENTIALS } from '../schema.ts';
import type { CachedCredential } from './credential-cache.ts';

/** A credential by its path, with its newest version if that row stores it, for `toCredentialWithNewest`. */
export const CREDENTIAL_WITH_NEWEST = `SELECT ${CREDENTIALS.list.parts.join('')}, count_id, newest_at, newest_sealed
  FROM credentials WHERE path = ?`;

/** A version of a credential, from either table; bind both parameters twice. */
export const VERSION = `SELECT version, type, created_at, sealed FROM credential_versions
  WHERE credential_id = ? AND version = ?
  UNION ALL SELECT version, type, newest_at, newest_sealed FROM credentials
  WHERE id = ? AND version = ? AND newest_sealed IS NOT NULL`;

/** When each version of a credential was stored; bind the parameter twice. */
export const HISTORY = `SELECT version, created_at FROM credential_versions WHERE credential_id = ?
  UNION ALL SELECT version, newest_at FROM credentials WHERE id = ? AND newest_sealed IS NOT NULL ORDER BY version`;

type OwnColumns = [countId: number, newestAt: number | null, sealed: Uint8Array | null];

/** `newest` is null if the row does not store it. */
export function toCredentialWithNewest(row: unknown): CachedCredential {
  const values = row as unknown[];
  const credential = CREDENTIALS.decodeArray(values);
  const [countId, newestAt, sealed] = values.slice(CREDENTIALS.columns.length) as OwnColumns;
  const { version, type } = credential;
  return {
    credential,
    countId,
    newest: newestAt === null || sealed === null ? null : { version, type, createdAt: newestAt, content: sealed },
  };
}

const ENTRY_COLUMNS = AUDIT_ENTRIES.list.parts.join('');

/** A range of the log, for `toEntry`. */
export const ENTRIES_IN_RANGE = `SELECT ${ENTRY_COLUMNS} FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`;

/** The same, but calls the function `gather` for each row. */
export const ENTRIES_GATHERED = `SELECT count(gather(${ENTRY_COLUMNS})) FROM
  (SELECT * FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?)`;

type EntryRow = [
  number,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string | null,
  string | null,
  string | null,
  string | null,
  string | null,
  string,
  ...(string | number | null)[],
];

/** The position of the first field of a use in a row. */
const FIRST_USE_FIELD = AUDIT_ENTRIES.columns.findIndex(({ name }) => name === USE_FIELDS[0]);
const SUBJECT_FIELD = AUDIT_ENTRIES.columns.findIndex(({ name }) => name === 'subject');

/** Reads an array in the order of `AUDIT_ENTRIES`. */
export function toEntry(row: unknown): AuditEntry {
  const values = row as EntryRow;
  const entry: AuditEntry = {
    seq: values[0],
    id: values[1],
    timestamp: values[2],
    event_type: values[3],
    agent_name: values[4],
    resource: values[5],
    action: values[6],
    result: values[7],
    policy_name: values[8],
    lease_id: values[9],
    reason: values[10],
    request_id: values[11],
    remote_addr: values[12],
    hmac: values[13],
  };
  const use = Object.fromEntries(USE_FIELDS.map((field, index) => [field, values[FIRST_USE_FIELD + index] ?? null]));
  const state = { subject: textAt(values, SUBJECT_FIELD), state: textAt(values, SUBJECT_FIELD + 1) };
  if (!hasState(state)) return hasUse(use) ? { ...entry, ...use } : entry;
  return { ...entry, ...(hasUse(use) ? use : {}), ...state };
}

function textAt(values: EntryRow, index: number): string | null {
  const value = values[index] ?? null;
  return value === null ? null : String(value);
}
