/** The PostgreSQL store, which several nodes share. The row lock on `audit_head` serializes their transactions. */
import type { AuditEntry } from '../../core/audit.ts';
import type { ReadSet } from '../../core/batch-state.ts';
import type { CountedCredential } from '../../core/credential.ts';
import type { Lease } from '../../core/lease.ts';
import type { AgentId, CredentialId, TokenHash } from '../../core/names.ts';
import { toAgent, toPolicy, toSession } from '../decode-rows.ts';
import { StoreError } from '../errors.ts';
import { Mutex } from '../mutex.ts';
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
import type { Committed, Head, LogLocation, Store, StoreTransaction, SweepResult, WriteSet } from '../store.ts';
import { readAccessCount } from './access-counts.ts';
import type { PostgresAddress } from './address.ts';
import type { Connection } from './connection.ts';
import { countLeases, countRevokedBy, listLeases } from './lease-lists.ts';
import { countCredentials, listCredentials } from './lists.ts';
import { findSeqAt, hasEntryBeforeFirst, matchEntries, readEntries, readHead } from './log.ts';
import { prepareSchema } from './migrate.ts';
import { Pool } from './pool.ts';
import { assertPrivileges } from './privileges.ts';
import { ReconnectThrottle } from './reconnect-throttle.ts';
import { sweep } from './sweeper.ts';
import { beginTransaction, prepareTransactions } from './transaction.ts';
import { initialise, isEmpty, readEpoch, readHighWaterTime, readRootKeyCheck, readTime } from './vault-metadata.ts';

/** In addition to one for transactions, and one for sessions and epochs. */
const READ_CONNECTIONS = 3;
/** A migration may wait for that of another node, and rewrite large tables. */
const MIGRATION_TIMEOUT_MS = 15 * 60_000;
/** A connection that was lost before its use fails within this time. */
const IMMEDIATE_LOSS_MS = 500;

export class PostgresStore implements Store {
  readonly isMultiWriter = true;
  readonly logLocation: LogLocation;
  readonly #throttle: ReconnectThrottle;
  readonly #pool: Pool;
  /** For sessions and epochs, which precede every batch: they do not queue behind lists. */
  readonly #priorityPool: Pool;
  #connection: Connection | null = null;
  readonly #mutex = new Mutex();
  #isClosed = false;

  private constructor(address: PostgresAddress) {
    this.#throttle = new ReconnectThrottle(address);
    this.logLocation = { kind: 'postgres', address };
    this.#pool = new Pool(this.#throttle, READ_CONNECTIONS);
    this.#priorityPool = new Pool(this.#throttle, 1);
  }

  /** Connects, migrates the schema, and checks the privileges of the role. @throws StoreError */
  static async open(address: PostgresAddress, mayMigrate = true): Promise<PostgresStore> {
    const store = new PostgresStore(address);
    try {
      await store.#pool.use((connection) => prepareSchema(connection, mayMigrate), MIGRATION_TIMEOUT_MS);
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

  /** Waits until the previous transaction has ended; the ledger opens only one at a time. */
  async begin(keys: readonly ReadSet[], knownSeq = 0): Promise<StoreTransaction> {
    const release = await this.#mutex.acquire();
    try {
      const transaction = await this.#open(keys, knownSeq);
      return {
        ...transaction,
        commit: (batch) => this.#commit(transaction, batch).finally(release),
        rollback: () => transaction.rollback().finally(release),
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Retries once after a lost connection: nothing was written yet, and another server may have taken over. */
  async #open(keys: readonly ReadSet[], knownSeq: number): Promise<StoreTransaction> {
    const connection = await this.#writingConnection();
    const startedAt = performance.now();
    try {
      return await beginTransaction(connection, keys, knownSeq);
    } catch (error) {
      if (connection.isOpen) throw error;
      for (const pool of [this.#pool, this.#priorityPool]) pool.closeIdle();
      if (performance.now() - startedAt > IMMEDIATE_LOSS_MS) throw error;
      return beginTransaction(await this.#writingConnection(), keys, knownSeq);
    }
  }

  async #commit(transaction: StoreTransaction, batch: WriteSet): Promise<Committed> {
    try {
      return await transaction.commit(batch);
    } finally {
      if (this.#connection?.isOpen === false) for (const pool of [this.#pool, this.#priorityPool]) pool.closeIdle();
    }
  }

  async #writingConnection(): Promise<Connection> {
    if (this.#isClosed) throw new StoreError('unavailable', 'PostgreSQL: the store was closed');
    if (this.#connection?.isOpen === true) return this.#connection;
    this.#connection = await this.#throttle.open('writing');
    await prepareTransactions(this.#connection);
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
    return this.#pool.use((connection) => countRevokedBy(connection, marked, beforeSeq));
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
    await this.#mutex.idle();
    this.#connection?.close();
    this.#pool.close();
    this.#priorityPool.close();
  }
}
