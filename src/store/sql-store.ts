/**
 * The storage port and its contract, which `test/contract` checks for every store. What a store reads is written once
 * for all: a store runs the procedures on its database, and adds transactions, access counts and sweeping. It only
 * keeps rows: it makes no decisions, decrypts no value and knows no key.
 *
 * Errors: a method rejects only with a `StoreError`.
 */
import type { ReadSet } from '../core/batch-state.ts';
import type { InitialKeys } from '../core/keyset.ts';
import type { AgentId, CredentialId, TokenHash } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import { findSeqAt, hasEntryBeforeFirst, matchEntries, readEntries, readHead, readMacs } from './audit-log.ts';
import type { StoredCheckpoint } from './audit-tables.ts';
import { readNewestCheckpoint, readTreeNodes } from './audit-tree.ts';
import { countCredentials, listCredentials } from './credential-lists.ts';
import {
  type ExposureCursor,
  type ExposureFilter,
  listExposures,
  listLeaseExposures,
  readExposureProgress,
} from './exposures.ts';
import { countActiveLeases, countLeases, countRevokedBy, listLeases } from './lease-lists.ts';
import { OverviewReads } from './overview-reads.ts';
import type { AuditFilter, CredentialCursor, CredentialListQuery, LeaseQuery, RevokedLeases } from './queries.ts';
import { listOldSeals, type SealedCursor } from './reseals.ts';
import { countOpenSessions, listSessions, type SessionCursor } from './session-lists.ts';
import type { Head, LogLocation, SeenEntry, StoreTransaction, SweepResult } from './store.ts';
import type { StoreMeasures } from './store-measures.ts';
import type { StreamLog } from './stream-log.ts';
import {
  isDeregistered,
  isEmpty,
  readEpoch,
  readHighWaterTime,
  readLeaseOfToken,
  readRootKeyCheck,
  readSeals,
  readSession,
  readStoredKeys,
  readUsage,
} from './vault-metadata.ts';

export abstract class SqlStore extends OverviewReads {
  /** Whether other processes may write to it: then the `shared` view of a transaction overrides cached state. */
  abstract readonly isMultiWriter: boolean;
  abstract readonly measures: StoreMeasures;
  /** Creates the vault: its check value, its first head record, and its keys. Only once. */
  abstract initialise(keyCheck: string, head: Head, now: number, keys?: InitialKeys): Promise<void>;
  /** For a vault from before key slots existed. Resolves to false if another node has done it. */
  abstract addKeys(keys: InitialKeys): Promise<boolean>;
  /**
   * Records the last entry that this process has seen. From then on a transaction or a read of a shared store fails on
   * a server whose log lacks the entry, and the store leaves that server.
   */
  abstract see(entry: SeenEntry | null): void;
  /** The location that `openLogReader` takes in a thread or in another process. @throws StoreError */
  abstract locateLog(): Promise<LogLocation>;
  abstract begin(reads: readonly ReadSet[]): Promise<StoreTransaction>;
  /** Stores the checkpoint unless one of that generation and size exists. Resolves to the durable one. */
  abstract addCheckpoint(checkpoint: StoredCheckpoint): Promise<StoredCheckpoint>;
  /** Committed retrievals of the credential; 0 if it does not exist. */
  abstract readAccessCount(credentialId: CredentialId): Promise<number>;
  /** The clock of the shared database, in milliseconds since 1970; null if the process uses its own clock. */
  abstract readTime(): Promise<number | null>;
  /**
   * Records `now` for `readHighWaterTime`, and deletes up to `limit` rows that ended long ago, within a few
   * milliseconds. `isDone`: no more rows are due. A lease that was revoked may stay until 7 days after its original
   * expiry. Writes no audit entry and runs outside transactions.
   */
  abstract sweep(now: number, limit: number): Promise<SweepResult>;
  /** For one log stream. @throws StoreError */
  abstract openStreamLog(): StreamLog;
  abstract close(): Promise<void>;

  /** The check value of the root key, or null for a new vault. */
  readRootKeyCheck() {
    return this.run(readRootKeyCheck());
  }

  /** What is stored for the keys of the vault. */
  readStoredKeys() {
    return this.run(readStoredKeys(), true);
  }

  /** The number of values sealed under each data key, by its id. */
  readSeals() {
    return this.run(readSeals());
  }

  /**
   * The head record (null if deleted), the last entry of the log (null if the log is empty), and the highest sequence
   * number of an entry, a lease or a bulk revocation (0 if none exists).
   */
  readHead() {
    return this.run(readHead());
  }

  /** Whether no table has a row: a database with rows but without a vault record was tampered with. */
  isEmpty() {
    return this.run(isEmpty());
  }

  readSession(tokenHash: TokenHash) {
    return this.run(readSession(tokenHash), true);
  }

  /** The use lease with the token; null if none has it. */
  readLeaseOfToken(tokenHash: TokenHash) {
    return this.run(readLeaseOfToken(tokenHash), true);
  }

  readUsage(path: CredentialPath) {
    return this.run(readUsage(path), true);
  }

  /**
   * Whether a bulk revocation of all leases of the agent exists and its row does not. An altered row counts as a row.
   */
  isDeregistered(agentId: AgentId) {
    return this.run(isDeregistered(agentId));
  }

  /** The current epoch, without a transaction. Control state of that epoch is current. */
  readEpoch() {
    return this.run(readEpoch(), true);
  }

  // Steps: each takes a few milliseconds, however large the table is, and may return no rows.

  /** By path, from the cursor on; at most `limit` rows, at least 1. */
  listCredentials(query: CredentialListQuery, from: CredentialCursor, limit: number) {
    return this.run(listCredentials(this.dialect, query, from, limit));
  }

  /** Counts from the cursor on, and stops after `atMost`, which is at least 1. */
  countCredentials(query: CredentialListQuery, from: CredentialCursor, atMost: number) {
    return this.run(countCredentials(this.dialect, query, from, atMost));
  }

  /** Newest first, those before `beforeSeq`; at most `limit` rows, at least 1. */
  listLeases(query: LeaseQuery, beforeSeq: number, limit: number) {
    return this.run(listLeases(this.dialect, query, beforeSeq, limit));
  }

  /** As `countCredentials`. */
  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number) {
    return this.run(countLeases(this.dialect, query, beforeSeq, atMost));
  }

  /** Counts the leases that the committed bulk revocation ended: those active until then. The result never changes. */
  countRevokedBy(revoked: RevokedLeases, beforeSeq: number) {
    return this.run(countRevokedBy(this.dialect, revoked, beforeSeq));
  }

  /** Counts the leases active at `now` with `fromSeq` ≤ seq < `beforeSeq`, newest first. */
  countActiveLeases(now: number, fromSeq: number, beforeSeq: number) {
    return this.run(countActiveLeases(this.dialect, now, fromSeq, beforeSeq));
  }

  /** Counts the sessions that end after the cursor, at most `limit`, and returns the cursor of the last one. */
  countOpenSessions(after: SessionCursor, limit: number) {
    return this.run(countOpenSessions(after, limit));
  }

  /** The sessions that end after the cursor, in that order; at most `limit` rows, at least 1. */
  listSessions(after: SessionCursor, limit: number) {
    return this.run(listSessions(after, limit));
  }

  /** Changes whenever a lease becomes part of the stored exposures, without which none is deleted. */
  readExposureProgress() {
    return this.run(readExposureProgress());
  }

  /**
   * What is stored, in key order; at most `limit` rows, at least 1. Leases after `readExposureProgress` are not part.
   */
  listExposures(filter: ExposureFilter, after: ExposureCursor, limit: number) {
    return this.run(listExposures(filter, after, limit));
  }

  /** The exposures that follow from leases before `beforeSeq`; counts those after `throughSeq`. */
  listLeaseExposures(filter: ExposureFilter, throughSeq: number, now: number, beforeSeq: number) {
    return this.run(listLeaseExposures(this.dialect, filter, throughSeq, now, beforeSeq));
  }

  /** Values that are not under the data key with the id, in the order of their keys; reads at most `limit` rows. */
  listOldSeals(keyId: string, from: SealedCursor, limit: number) {
    return this.run(listOldSeals(this.dialect.sealedSources, keyId, from, limit));
  }

  /** Entries with `fromSeq` ≤ seq ≤ `toSeq`, oldest first, at most `limit`. */
  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.run(readEntries(fromSeq, toSeq, limit));
  }

  /** The stored nodes of a level of the tree with `from` ≤ position < `to`, in order. */
  readTreeNodes(level: number, from: number, to: number) {
    return this.run(readTreeNodes(level, from, to));
  }

  /** Of the newest generation; null if none was signed. */
  readNewestCheckpoint() {
    return this.run(readNewestCheckpoint());
  }

  /** The MACs of entries, as `readEntries`. */
  readMacs(fromSeq: number, toSeq: number, limit: number) {
    return this.run(readMacs(fromSeq, toSeq, limit));
  }

  /**
   * Whether an entry has a sequence number below 1. The service writes no such entry, and no read of a range shows it.
   */
  hasEntryBeforeFirst() {
    return this.run(hasEntryBeforeFirst());
  }

  /** A step, as above, through the range in that order. */
  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc') {
    return this.run(matchEntries(this.dialect, filter, fromSeq, toSeq, order));
  }

  /**
   * The sequence number of the first entry at or after the timestamp, or null. Logarithmic in the length of the log.
   */
  findSeqAt(timestamp: string) {
    return this.run(findSeqAt(timestamp));
  }

  /** The latest `now` of any `sweep`, or 0: what had ended by then must stay ended when a clock is set back. */
  readHighWaterTime() {
    return this.run(readHighWaterTime());
  }
}

/** The port: what the class offers to others. */
export type Store = Pick<SqlStore, keyof SqlStore>;

/** Reads committed entries over a separate connection. */
export interface LogReader extends Pick<Store, 'readEntries'> {
  close(): void;
}
