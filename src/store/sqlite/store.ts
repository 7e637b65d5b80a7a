/** The SQLite store. The process owns the file, so that only the commit of a transaction takes a lock. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ReadSet } from '../../core/batch-state.ts';
import type { AgentId, CredentialId, TokenHash } from '../../core/names.ts';
import { toAgent, toPolicy, toSession } from '../decode-rows.ts';
import { Mutex } from '../mutex.ts';
import type { AuditFilter, CredentialCursor, CredentialQuery, LeaseQuery, RevokedLeases } from '../queries.ts';
import type { Committed, Head, LogLocation, Store, StoreTransaction, WriteSet } from '../store.ts';
import { AccessCounts, type CountingOptions, type CountRowId } from './access-counts.ts';
import { Checkpointer, type CheckpointOptions } from './checkpointer.ts';
import { CredentialCache } from './credential-cache.ts';
import { inTransaction, openDatabase, toStoreError } from './database.ts';
import { LeaseLists } from './lease-lists.ts';
import { Lists } from './lists.ts';
import { KeyLoader } from './loader.ts';
import { Log } from './log.ts';
import { Sweeper } from './sweeper.ts';
import { type AnchorEntry, type SyncFile, WalSync } from './wal-sync.ts';
import { SqliteBatchWriter } from './writer.ts';

interface SqliteOptions {
  readonly anchor?: AnchorEntry;
  readonly syncFile?: SyncFile | undefined;
  readonly checkpoints?: CheckpointOptions;
  readonly counting?: CountingOptions;
}

export class SqliteStore implements Store {
  readonly isMultiWriter = false;
  readonly logLocation: LogLocation;
  readonly #database: DatabaseSync;
  readonly #counts: AccessCounts;
  readonly #cache: CredentialCache;
  readonly #loader: KeyLoader;
  readonly #writer: SqliteBatchWriter;
  readonly #lists: Lists;
  readonly #leaseLists: LeaseLists;
  readonly #log: Log;
  readonly #sweeper: Sweeper;
  readonly #session: StatementSync;
  readonly #countIdOf: StatementSync;
  readonly #walSync: WalSync;
  readonly #checkpointer: Checkpointer;
  readonly #mutex = new Mutex();

  /** Opens or creates the file. The options other than `anchor` are for tests. @throws StoreError */
  constructor(file: string, { anchor, syncFile, checkpoints, counting }: SqliteOptions = {}) {
    this.logLocation = { kind: 'sqlite', file };
    this.#database = openDatabase(file);
    try {
      this.#counts = new AccessCounts(this.#database, counting);
      this.#cache = new CredentialCache(this.#database);
      this.#loader = new KeyLoader(this.#database, this.#cache);
      this.#writer = new SqliteBatchWriter(this.#database, this.#counts);
      this.#lists = new Lists(this.#database, this.#counts);
      this.#leaseLists = new LeaseLists(this.#database);
      this.#log = new Log(this.#database);
      this.#sweeper = new Sweeper(this.#database);
      this.#session = this.#database.prepare('SELECT * FROM sessions WHERE token_hash = ?');
      this.#countIdOf = this.#database.prepare('SELECT count_id FROM credentials WHERE id = ?');
      this.#walSync = new WalSync(file, syncFile, anchor);
      this.#checkpointer = new Checkpointer(this.#database, file, checkpoints);
    } catch (error) {
      this.#database.close();
      throw toStoreError(error);
    }
  }

  readRootKeyCheck() {
    return this.#read(() => {
      const { key_check: keyCheck } = this.#database.prepare('SELECT key_check FROM vault').get() ?? {};
      return keyCheck === undefined ? null : String(keyCheck);
    });
  }

  initialise(keyCheck: string, { seq, hmac, mac, epoch }: Head, now: number) {
    return this.#write(() =>
      inTransaction(this.#database, () => {
        this.#database.prepare('INSERT INTO vault VALUES (1, ?, ?, ?)').run(keyCheck, now, now);
        this.#database.prepare('INSERT INTO audit_head VALUES (1, ?, ?, ?, ?, 0)').run(seq, hmac, mac, epoch);
      }),
    );
  }

  readHead() {
    return this.#read(() => this.#log.head());
  }

  isEmpty() {
    return this.#read(() => {
      const tables = ['audit_entries', 'agents', 'policies', 'sessions', 'credentials', 'leases', 'bulk_revocations'];
      return tables.every((table) => this.#database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined);
    });
  }

  readAgents() {
    return this.#read(() => this.#database.prepare('SELECT * FROM agents').all().map(toAgent));
  }

  readPolicies() {
    return this.#read(() => this.#database.prepare('SELECT * FROM policies').all().map(toPolicy));
  }

  readSession(tokenHash: TokenHash) {
    return this.#read(() => {
      const row = this.#session.get(tokenHash);
      return row === undefined ? null : toSession(row);
    });
  }

  isDeregistered(agentId: AgentId) {
    return this.#read(() => {
      const marked = this.#database.prepare(
        `SELECT 1 FROM bulk_revocations WHERE agent_id = :agentId AND credential_id = ''
           AND NOT EXISTS (SELECT 1 FROM agents WHERE id = :agentId)`,
      );
      return marked.get({ agentId }) !== undefined;
    });
  }

  /** Waits until the previous transaction has ended; the ledger opens only one at a time. */
  async begin(keys: readonly ReadSet[]): Promise<StoreTransaction> {
    const release = await this.#mutex.acquire();
    try {
      await this.#checkpointer.waitUntilWritable();
      this.#walSync.assertInPlace();
      const { found, countIds } = this.#loader.load(keys);
      return {
        found,
        shared: null,
        commit: (batch) => this.#commit(batch, countIds).finally(release),
        rollback: async () => release(),
      };
    } catch (error) {
      release();
      throw toStoreError(error);
    }
  }

  readEpoch() {
    return this.#read(() => Number(this.#database.prepare('SELECT epoch FROM audit_head').get()?.['epoch'] ?? 0));
  }

  async readAccessCount(credentialId: CredentialId) {
    await this.#recovered();
    return this.#read(() => {
      const countId = this.#countIdOf.get(credentialId)?.['count_id'];
      return typeof countId === 'number' ? this.#counts.get(countId) : 0;
    });
  }

  async listCredentials(query: CredentialQuery, from: CredentialCursor, limit: number) {
    await this.#recovered();
    return this.#read(() => this.#lists.credentials(query, from, limit));
  }

  countCredentials(query: CredentialQuery, from: CredentialCursor, atMost: number) {
    return this.#read(() => this.#lists.countCredentials(query, from, atMost));
  }

  listLeases(query: LeaseQuery, beforeSeq: number, limit: number) {
    return this.#read(() => this.#leaseLists.leases(query, beforeSeq, limit));
  }

  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number) {
    return this.#read(() => this.#leaseLists.countLeases(query, beforeSeq, atMost));
  }

  countRevokedBy(marked: RevokedLeases, beforeSeq: number) {
    return this.#read(() => this.#leaseLists.countRevokedBy(marked, beforeSeq));
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.#read(() => this.#log.entries(fromSeq, toSeq, limit));
  }

  hasEntryBeforeFirst() {
    return this.#read(() => this.#log.hasEntryBeforeFirst());
  }

  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc') {
    return this.#read(() => this.#log.matching(filter, fromSeq, toSeq, order));
  }

  findSeqAt(timestamp: string) {
    return this.#read(() => this.#log.findSeqAt(timestamp));
  }

  async readTime() {
    return null;
  }

  readHighWaterTime() {
    return this.#read(() =>
      Number(this.#database.prepare('SELECT high_water_time FROM vault').get()?.['high_water_time'] ?? 0),
    );
  }

  sweep(now: number, limit: number) {
    return this.#write(() => this.#sweeper.sweep(now, limit));
  }

  async close() {
    await this.#walSync.close();
    await this.#checkpointer.close();
    this.#counts.close();
    this.#database.close();
  }

  /** Resolves when the access counts match the log. */
  #recovered(): Promise<void> {
    return this.#counts.recovered().catch((error: unknown) => {
      throw toStoreError(error);
    });
  }

  async #commit(batch: WriteSet, countIds: ReadonlyMap<CredentialId, CountRowId>): Promise<Committed> {
    try {
      this.#cache.invalidate(batch);
      this.#writer.commit(batch, countIds);
    } catch (error) {
      throw toStoreError(error);
    }
    this.#checkpointer.batchCommitted();
    return { durable: this.#walSync.flush(batch.entries.at(-1)) };
  }

  /** Returns only durable data: a committed batch may still be waiting for its sync. */
  async #read<T>(work: () => T): Promise<T> {
    try {
      const value = work();
      await this.#walSync.idle();
      return value;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #write<T>(work: () => T): Promise<T> {
    try {
      await this.#checkpointer.waitUntilWritable();
      const value = work();
      this.#checkpointer.committed();
      await this.#walSync.flush();
      return value;
    } catch (error) {
      throw toStoreError(error);
    }
  }
}
