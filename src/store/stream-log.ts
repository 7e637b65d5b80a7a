/** The log as a stream reads it: over a separate connection, behind the head, in pages. */
import type { AuditEntry } from '../vault/audit/audit-entry.ts';
import { numberIn } from './dialect.ts';
import { type Procedure, sql } from './statement.ts';

/** The log must be closed after an error of any method. */
export interface StreamLog {
  /** Whether this node sends the stream. It does until the log is closed: another node then may. */
  claim(name: string): Promise<boolean>;
  /** The sequence number of the last durable entry; 0 if the log is empty. */
  readEnd(): Promise<number>;
  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<readonly AuditEntry[]>;
  /** The last entry that the stream has sent; 0 for a new stream. */
  readPosition(name: string): Promise<number>;
  savePosition(name: string, seq: number): Promise<void>;
  close(): void;
}

export function* readPosition(name: string): Procedure<number> {
  const [row] = yield sql`SELECT seq FROM log_streams WHERE name = ${name}`;
  return numberIn(row, 'seq');
}

export function* savePosition(name: string, seq: number): Procedure<void> {
  yield sql`INSERT INTO log_streams (name, seq) VALUES (${name}, ${seq})
    ON CONFLICT (name) DO UPDATE SET seq = excluded.seq`;
}

export function* readLastSeq(): Procedure<number> {
  const [row] = yield sql`SELECT max(seq) AS seq FROM audit_entries`;
  return numberIn(row, 'seq');
}
