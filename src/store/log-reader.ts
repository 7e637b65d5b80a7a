/** Opening a log for reading beside the store, from a thread of its own. */

import { PostgresLogReader } from './postgres/log-reader.ts';
import { SqliteLogReader } from './sqlite/log-reader.ts';
import type { LogLocation, LogReader } from './store.ts';

/** @throws StoreFailure */
export async function openLogReader(location: LogLocation): Promise<LogReader> {
  return location.kind === 'sqlite' ? new SqliteLogReader(location.file) : PostgresLogReader.open(location.address);
}
