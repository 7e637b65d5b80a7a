/** Opening a log for reading beside the store, from a thread of its own. */
import type { LogLocation, LogReader } from './port.ts';
import { SqliteLogReader } from './sqlite/logreader.ts';

export function openLogReader({ file }: LogLocation): LogReader {
  return new SqliteLogReader(file);
}
