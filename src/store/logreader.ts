/** Reading the log beside the store, from a thread of its own. */
import type { AuditEntry } from '../core/audit.ts';
import { SqliteLogReader } from './sqlite/logreader.ts';

/** Where a log lies; plain data, so that it can be handed to a thread. */
export interface LogLocation {
  readonly kind: 'sqlite';
  readonly file: string;
}

export interface LogReader {
  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. Sees what was committed. */
  entries(fromSeq: number, toSeq: number, limit: number): AuditEntry[];
  close(): void;
}

export function openLogReader({ file }: LogLocation): LogReader {
  return new SqliteLogReader(file);
}
