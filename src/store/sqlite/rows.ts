/**
 * The frequent queries. SQLite returns their rows as arrays, which cost half as much as objects.
 */
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

/** A range of the log, for `toEntry`, which reads an array in the order of the columns. */
export const ENTRIES_IN_RANGE = `SELECT ${ENTRY_COLUMNS} FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`;

/** The same, but calls the function `gather` for each row. */
export const ENTRIES_GATHERED = `SELECT count(gather(${ENTRY_COLUMNS})) FROM
  (SELECT * FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?)`;
