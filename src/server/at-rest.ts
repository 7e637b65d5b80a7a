/** Reads an embedded database before it is opened. */
import { statSync } from 'node:fs';
import { StartupError } from '../platform/errors.ts';
import { SqliteLogFile } from '../store/sqlite/log-file.ts';

/**
 * Changes nothing: opening would migrate the schema, and discard an unreadable part of the write-ahead log. Null if the
 * database cannot be read: opening it reports the error.
 */
export async function readAtRest<T>(
  file: string,
  read: (log: SqliteLogFile) => Promise<T>,
  isImmutable = !hasWriteAheadLog(file),
): Promise<T | null> {
  let log: SqliteLogFile | null = null;
  try {
    log = new SqliteLogFile(file, isImmutable);
    return await read(log);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    return null;
  } finally {
    log?.close();
  }
}

export function hasWriteAheadLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
