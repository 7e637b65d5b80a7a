/** Opens a log for reading from a thread, next to the store. */
import { PostgresLogReader } from './postgres/log-reader.ts';
import { SqliteLogReader } from './sqlite/log-reader.ts';
import type { LogLocation, LogReader } from './store.ts';

/** @throws StoreError */
export async function openLogReader(location: LogLocation): Promise<LogReader> {
  return location.kind === 'sqlite' ? new SqliteLogReader(location.file) : PostgresLogReader.open(location.address);
}
