/**
 * SQL expressions of encrypted values, for `executeSql`. SQLite stores a small newest value in its credential's row;
 * PostgreSQL stores every value in the row of its version.
 */
import { STORE } from './stores.ts';

const isSqlite = STORE === 'sqlite';

const ofNewest = (path: string): string =>
  `credential_id = ${idAt(path)} AND version = (SELECT version FROM credentials WHERE path = '${path}')`;

/** The immutable id of the credential that has the path. */
export const idAt = (path: string): string => `(SELECT id FROM credentials WHERE path = '${path}')`;

/** The encrypted newest value at the path, if it is small. */
export const newestValueAt = (path: string): string =>
  isSqlite
    ? `(SELECT newest_sealed FROM credentials WHERE path = '${path}')`
    : `(SELECT sealed FROM credential_versions WHERE ${ofNewest(path)})`;

/** Replaces it with an expression over its column. */
export const alterNewestAt = (path: string, toValue: (column: string) => string): string =>
  isSqlite
    ? `UPDATE credentials SET newest_sealed = ${toValue('newest_sealed')} WHERE path = '${path}'`
    : `UPDATE credential_versions SET sealed = ${toValue('sealed')} WHERE ${ofNewest(path)}`;

export const removeNewestAt = (path: string): string =>
  isSqlite ? alterNewestAt(path, () => 'NULL') : `DELETE FROM credential_versions WHERE ${ofNewest(path)}`;

/** A literal of bytes, given as hexadecimal digits. */
export const bytes = (hex: string): string => (isSqlite ? `x'${hex}'` : `'\\x${hex}'::bytea`);

/** Two byte values concatenated. SQLite returns them as text. */
export const concatBytes = (first: string, second: string): string =>
  isSqlite ? `CAST(${first} || ${second} AS BLOB)` : `(${first} || ${second})`;
