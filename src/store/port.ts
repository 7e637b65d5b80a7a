/**
 * The storage port; `test/contract` checks every store. A store keeps rows: it makes no decisions, decrypts no value
 * and knows no key.
 */

import type { ReadSet } from '../core/batch-state.ts';
import type { Histogram } from '../core/measures.ts';
import type { CredentialId } from '../core/names.ts';
import type { AuditEntry } from '../vault/audit/audit-entry.ts';
import type { StoredCheckpoint } from '../vault/audit/proofs.ts';
import type { InitialKeys } from '../vault/keys/keyset.ts';
import type { Dialect } from './dialect.ts';
import type { Procedure } from './statement.ts';
import type { Head, LoadedView, LogLocation, SeenEntry, StoreTransaction, SweepResult } from './stored-data.ts';

/** A method rejects only with a `StoreError`. */
export interface Store {
  readonly dialect: Dialect;
  /** Whether other processes may write to it: then the `shared` view of a transaction overrides cached state. */
  readonly isMultiWriter: boolean;
  readonly measures: StoreMeasures;
  /** Creates the vault: its check value, its first head record, and its keys. Only once. */
  initialise(keyCheck: string, head: Head, now: number, keys: InitialKeys): Promise<void>;
  /**
   * Records the last entry that this process has seen. Later transactions and reads of a shared store fail on a server
   * whose log lacks the entry, and the store leaves that server.
   */
  see(entry: SeenEntry | null): void;
  /** The location that `openLogReader` takes in a thread or in another process. */
  locateLog(): Promise<LogLocation>;
  begin(reads: readonly ReadSet[]): Promise<StoreTransaction>;
  /** Loads the rows of `begin` without the lock that serializes nodes. */
  load(reads: readonly ReadSet[]): Promise<LoadedView>;
  /**
   * Runs the procedure outside transactions, and resolves to committed, durable data. `urgent`, for reads that precede
   * every batch: does not wait for lists. Steps through lists and the audit log take a few milliseconds each, however
   * large the table is, and may return no rows.
   */
  run<T>(procedure: Procedure<T>, priority?: 'urgent'): Promise<T>;
  /** Stores the checkpoint unless one of that generation and size exists. Resolves to the durable one. */
  addCheckpoint(checkpoint: StoredCheckpoint): Promise<StoredCheckpoint>;
  /** Committed retrievals of the credential; 0 if it does not exist. */
  readAccessCount(credentialId: CredentialId): Promise<number>;
  /** The clock of the shared database, in milliseconds since 1970; null if the process uses its own clock. */
  readTime(): Promise<number | null>;
  /**
   * Records `now` for `readHighWaterTime`, and deletes up to `limit` rows that ended long ago, within a few
   * milliseconds. `isDone`: no more rows are due. A lease that was revoked may stay until 7 days after its original
   * expiry. Writes no audit entry and runs outside transactions.
   */
  sweep(now: number, limit: number): Promise<SweepResult>;
  /** Opens the position of one log stream. @throws StoreError */
  openStreamLog(): StreamLog;
  close(): Promise<void>;
}

/** Reads committed entries over a separate connection. */
export interface LogReader {
  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]>;
  close(): void;
}

/**
 * The audit log as a stream reads it: over a separate connection, behind the head, in pages. Must be closed after an
 * error of any method.
 */
export interface StreamLog {
  /** Whether this node sends the stream. Another node can claim it after `close`. */
  claim(name: string): Promise<boolean>;
  /** The sequence number of the last durable entry; 0 if the audit log is empty. */
  readEnd(): Promise<number>;
  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<readonly AuditEntry[]>;
  /** The last entry that the stream has sent; 0 for a new stream. */
  readPosition(name: string): Promise<number>;
  savePosition(name: string, seq: number): Promise<void>;
  close(): void;
}

/** `null` where the other kind of store has no such thing. */
export interface StoreMeasures {
  /** Null on a shared store, whose server syncs. */
  readonly disk: DiskMeasures | null;
  /** Null for the embedded store. */
  readonly connections: ConnectionMeasures | null;
}

export interface DiskMeasures {
  readonly syncSeconds: Histogram;
  readonly checkpointSeconds: Histogram;
  /** Pages in the write-ahead log that are not in the database yet. */
  pendingPages(): number;
  /** Size of the write-ahead log's file in bytes; it does not shrink while the server runs. */
  walBytes(): number;
}

/** Connections for reading; one more writes. */
interface ConnectionMeasures {
  inUse(): number;
  waiting(): number;
}
