/** The store on PostgreSQL, which several nodes share: turns of all of them go one after the other, under the lock of the head's row. */
import type { AuditEntry } from '../../core/audit.ts';
import type { ReadSet } from '../../core/batch-state.ts';
import type { CountedCredential } from '../../core/credential.ts';
import type { Lease } from '../../core/lease.ts';
import type { AgentId, CredentialId, TokenHash } from '../../core/names.ts';
import { toAgent, toPolicy, toSession } from '../decode-rows.ts';
import type {
  AuditFilter,
  CountStep,
  CredentialCursor,
  CredentialQuery,
  LeaseQuery,
  ListStep,
  Matches,
  RevokedLeases,
} from '../queries.ts';
import {
  type Committed,
  type Head,
  type LogLocation,
  type Store,
  StoreError,
  type StoreTransaction,
  type SweepResult,
  type WriteSet,
} from '../store.ts';
import { readAccessCount } from './access-counts.ts';
import type { PostgresAddress } from './address.ts';
import type { Connection } from './connection.ts';
import { countEnded, countLeases, listLeases } from './lease-lists.ts';
import { countCredentials, listCredentials } from './lists.ts';
import { findSeqAt, hasEntryBeforeFirst, matchEntries, readEntries, readHead } from './log.ts';
import { prepareSchema } from './migrate.ts';
import { Pool } from './pool.ts';
import { assertPrivileges } from './privileges.ts';
import { ReconnectThrottle } from './reconnect-throttle.ts';
import { sweep } from './sweeper.ts';
import { openTurn, prepareTurns } from './transaction.ts';
import { initialise, isEmpty, readEpoch, readHighWaterTime, readRootKeyCheck, readTime } from './vault-metadata.ts';

/** Beside the one for turns, and one for sessions and epochs. */
const READ_CONNECTIONS = 3;
/** It may wait for another node that does the same, and go through large tables. */
const MIGRATES_WITHIN_MS = 15 * 60_000;
/** A connection that was lost before it was used is found out in less. */
const LOST_AT_ONCE_MS = 500;

export class PostgresStore implements Store {
  readonly isMultiWriter = true;
  readonly logLocation: LogLocation;
  readonly #dialler: ReconnectThrottle;
  readonly #pool: Pool;
  /** For what everybody waits for before a turn: no list stands before it. */
  readonly #priorityPool: Pool;
  #connection: Connection | null = null;
  #turnClosed: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(address: PostgresAddress) {
    this.#dialler = new ReconnectThrottle(address);
    this.logLocation = { kind: 'postgres', address };
    this.#pool = new Pool(this.#dialler, READ_CONNECTIONS);
    this.#priorityPool = new Pool(this.#dialler, 1);
  }

  /** Connects, brings the schema up to date, and sees that all that is needed is allowed. @throws StoreFailure */
  static async open(address: PostgresAddress, mayMigrate = true): Promise<PostgresStore> {
    const store = new PostgresStore(address);
    try {
      await store.#pool.use((connection) => prepareSchema(connection, mayMigrate), MIGRATES_WITHIN_MS);
      await store.#pool.use(assertPrivileges);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  readRootKeyCheck(): Promise<string | null> {
    return this.#pool.use(readRootKeyCheck);
  }

  initialise(keyCheck: string, head: Head, now: number): Promise<void> {
    return this.#pool.use((connection) => initialise(connection, keyCheck, head, now));
  }

  readHead() {
    return this.#pool.use(readHead);
  }

  isEmpty(): Promise<boolean> {
    return this.#pool.use(isEmpty);
  }

  readAgents() {
    return this.#pool.use(async (connection) =>
      (await connection.query`SELECT id, name, description, public_key, registered_at, mac FROM agents`).map(toAgent),
    );
  }

  readPolicies() {
    return this.#pool.use(async (connection) =>
      (await connection.query`SELECT name, principal, resources, actions, max_ttl, created_at, mac FROM policies`).map(
        toPolicy,
      ),
    );
  }

  readSession(tokenHash: TokenHash) {
    return this.#priorityPool.use(async (connection) => {
      const [row] =
        await connection.query`SELECT token_hash, agent_id, issued_at, expires_at, mac FROM sessions WHERE token_hash = ${tokenHash}`;
      return row === undefined ? null : toSession(row);
    });
  }

  isDeregistered(agentId: AgentId): Promise<boolean> {
    return this.#pool.use(async (connection) => {
      const marked =
        await connection.query`SELECT 1 FROM bulk_revocations WHERE agent_id = ${agentId} AND credential_id = ''
        AND NOT EXISTS (SELECT 1 FROM agents WHERE id = ${agentId})`;
      return marked.length > 0;
    });
  }

  /** Waits for the turn before: the ledger never does, it opens one at a time. */
  async begin(keys: readonly ReadSet[], knownSeq = 0): Promise<StoreTransaction> {
    const before = this.#turnClosed;
    const { promise, resolve: close } = Promise.withResolvers<void>();
    this.#turnClosed = promise;
    await before;
    try {
      const turn = await this.#open(keys, knownSeq);
      return {
        ...turn,
        commit: (batch) => this.#commit(turn, batch).finally(close),
        rollback: () => turn.rollback().finally(close),
      };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Once more where the connection was lost: nothing was done on it yet, and another server may be there already. */
  async #open(keys: readonly ReadSet[], knownSeq: number): Promise<StoreTransaction> {
    const connection = await this.#turnConnection();
    const startedAt = performance.now();
    try {
      return await openTurn(connection, keys, knownSeq);
    } catch (error) {
      if (connection.isOpen) throw error;
      for (const pool of [this.#pool, this.#priorityPool]) pool.closeIdle();
      if (performance.now() - startedAt > LOST_AT_ONCE_MS) throw error;
      return openTurn(await this.#turnConnection(), keys, knownSeq);
    }
  }

  async #commit(turn: StoreTransaction, batch: WriteSet): Promise<Committed> {
    try {
      return await turn.commit(batch);
    } finally {
      if (this.#connection?.isOpen === false) for (const pool of [this.#pool, this.#priorityPool]) pool.closeIdle();
    }
  }

  async #turnConnection(): Promise<Connection> {
    if (this.#isClosed) throw new StoreError('unavailable', 'PostgreSQL: the store was closed');
    if (this.#connection?.isOpen === true) return this.#connection;
    this.#connection = await this.#dialler.open('turns');
    await prepareTurns(this.#connection);
    return this.#connection;
  }

  readEpoch(): Promise<number> {
    return this.#priorityPool.use(readEpoch);
  }

  readAccessCount(credentialId: CredentialId): Promise<number> {
    return this.#pool.use((connection) => readAccessCount(connection, credentialId));
  }

  listCredentials(
    query: CredentialQuery,
    from: CredentialCursor,
    limit: number,
  ): Promise<ListStep<CountedCredential, CredentialCursor>> {
    return this.#pool.use((connection) => listCredentials(connection, query, from, limit));
  }

  countCredentials(
    query: CredentialQuery,
    from: CredentialCursor,
    atMost: number,
  ): Promise<CountStep<CredentialCursor>> {
    return this.#pool.use((connection) => countCredentials(connection, query, from, atMost));
  }

  listLeases(query: LeaseQuery, beforeSeq: number, limit: number): Promise<ListStep<Lease, number>> {
    return this.#pool.use((connection) => listLeases(connection, query, beforeSeq, limit));
  }

  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number): Promise<CountStep<number>> {
    return this.#pool.use((connection) => countLeases(connection, query, beforeSeq, atMost));
  }

  countRevokedBy(marked: RevokedLeases, beforeSeq: number): Promise<CountStep<number>> {
    return this.#pool.use((connection) => countEnded(connection, marked, beforeSeq));
  }

  readEntries(fromSeq: number, toSeq: number, limit: number): Promise<AuditEntry[]> {
    return this.#pool.use((connection) => readEntries(connection, fromSeq, toSeq, limit));
  }

  hasEntryBeforeFirst(): Promise<boolean> {
    return this.#pool.use(hasEntryBeforeFirst);
  }

  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Promise<Matches> {
    return this.#pool.use((connection) => matchEntries(connection, filter, fromSeq, toSeq, order));
  }

  findSeqAt(timestamp: string): Promise<number | null> {
    return this.#pool.use((connection) => findSeqAt(connection, timestamp));
  }

  readTime(): Promise<number> {
    return this.#pool.use(readTime);
  }

  readHighWaterTime(): Promise<number> {
    return this.#pool.use(readHighWaterTime);
  }

  sweep(now: number, limit: number): Promise<SweepResult> {
    return this.#pool.use((connection) => sweep(connection, now, limit));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turnClosed;
    this.#connection?.close();
    this.#pool.close();
    this.#priorityPool.close();
  }
}
