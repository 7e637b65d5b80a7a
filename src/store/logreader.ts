/** Opening a log for reading beside the store, from a thread of its own. */
import type { LogLocation, LogReader } from './port.ts';
import { PostgresLogReader } from './postgres/logreader.ts';
import { SqliteLogReader } from './sqlite/logreader.ts';

/** @throws StoreFailure */
export async function openLogReader(location: LogLocation): Promise<LogReader> {
  return location.kind === 'sqlite' ? new SqliteLogReader(location.file) : PostgresLogReader.open(location.address);
}
