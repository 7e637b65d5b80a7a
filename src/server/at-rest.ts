/** Reads an embedded database before it is opened. */
import { statSync } from 'node:fs';
import { StartupError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import { describeOpenError, isOfSystem, toStoreError } from '../store/sqlite/database.ts';
import { assertDiskSpace } from '../store/sqlite/disk-space.ts';
import { SqliteLogFile } from '../store/sqlite/log-file.ts';

/**
 * Changes nothing: opening would migrate the schema, and discard an unreadable part of the write-ahead log. Null if the
 * file is damaged or has another schema: opening it reports that. @throws StoreError for a failure of the system, such
 * as a full disk
 */
export async function readAtRest<T>(
  file: string,
  read: (log: SqliteLogFile) => Promise<T>,
  isImmutable = !hasWriteAheadLog(file),
): Promise<T | null> {
  let log: SqliteLogFile | null = null;
  try {
    if (!isImmutable) assertDiskSpace(file);
    log = new SqliteLogFile(file, isImmutable);
    return await read(log);
  } catch (error) {
    if (error instanceof StartupError || error instanceof StoreError) throw error;
    if (isOfSystem(error)) throw describeOpenError(file, toStoreError(error));
    return null;
  } finally {
    log?.close();
  }
}

export function hasWriteAheadLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
