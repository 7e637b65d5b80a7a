/**
 * What a store reads, written once for all stores: a store runs the procedures on its database, and adds transactions,
 * access counts and sweeping.
 */
import type { ReadSet } from '../core/batch-state.ts';
import type { AgentId, CredentialId, TokenHash } from '../core/names.ts';
import { findSeqAt, hasEntryBeforeFirst, matchEntries, readEntries, readHead } from './audit-log.ts';
import { countCredentials, listCredentials } from './credential-lists.ts';
import type { Dialect } from './dialect.ts';
import { countLeases, countRevokedBy, listLeases } from './lease-lists.ts';
import type { AuditFilter, CredentialCursor, CredentialListQuery, LeaseQuery, RevokedLeases } from './queries.ts';
import type { Procedure } from './statement.ts';
import type { Head, LogLocation, Store, StoreTransaction, SweepResult } from './store.ts';
import {
  isDeregistered,
  isEmpty,
  readAgents,
  readEpoch,
  readHighWaterTime,
  readPolicies,
  readRootKeyCheck,
  readSession,
} from './vault-metadata.ts';

export abstract class SqlStore implements Store {
  abstract readonly isMultiWriter: boolean;
  abstract readonly logLocation: LogLocation;
  protected abstract readonly dialect: Dialect;

  abstract initialise(keyCheck: string, head: Head, now: number): Promise<void>;
  abstract begin(reads: readonly ReadSet[], knownSeq?: number): Promise<StoreTransaction>;
  abstract readAccessCount(credentialId: CredentialId): Promise<number>;
  abstract readTime(): Promise<number | null>;
  abstract sweep(now: number, limit: number): Promise<SweepResult>;
  abstract close(): Promise<void>;

  /**
   * Runs the procedure outside transactions, and returns committed, durable data. An urgent one, which precedes every
   * batch, does not wait for lists. @throws StoreError
   */
  protected abstract run<T>(procedure: Procedure<T>, isUrgent?: boolean): Promise<T>;

  readRootKeyCheck() {
    return this.run(readRootKeyCheck());
  }

  readHead() {
    return this.run(readHead());
  }

  isEmpty() {
    return this.run(isEmpty());
  }

  readAgents() {
    return this.run(readAgents());
  }

  readPolicies() {
    return this.run(readPolicies());
  }

  readSession(tokenHash: TokenHash) {
    return this.run(readSession(tokenHash), true);
  }

  isDeregistered(agentId: AgentId) {
    return this.run(isDeregistered(agentId));
  }

  readEpoch() {
    return this.run(readEpoch(), true);
  }

  listCredentials(query: CredentialListQuery, from: CredentialCursor, limit: number) {
    return this.run(listCredentials(this.dialect, query, from, limit));
  }

  countCredentials(query: CredentialListQuery, from: CredentialCursor, atMost: number) {
    return this.run(countCredentials(this.dialect, query, from, atMost));
  }

  listLeases(query: LeaseQuery, beforeSeq: number, limit: number) {
    return this.run(listLeases(this.dialect, query, beforeSeq, limit));
  }

  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number) {
    return this.run(countLeases(this.dialect, query, beforeSeq, atMost));
  }

  countRevokedBy(revoked: RevokedLeases, beforeSeq: number) {
    return this.run(countRevokedBy(this.dialect, revoked, beforeSeq));
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.run(readEntries(fromSeq, toSeq, limit));
  }

  hasEntryBeforeFirst() {
    return this.run(hasEntryBeforeFirst());
  }

  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc') {
    return this.run(matchEntries(this.dialect, filter, fromSeq, toSeq, order));
  }

  findSeqAt(timestamp: string) {
    return this.run(findSeqAt(timestamp));
  }

  readHighWaterTime() {
    return this.run(readHighWaterTime());
  }
}
