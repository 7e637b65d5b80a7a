/** The SQLite store. The process owns the file, so that only the commit of a transaction takes a lock. */

import { statSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ReadSet } from '../../core/batch-state.ts';
import type { CredentialId } from '../../core/names.ts';
import type { StoredCheckpoint } from '../../vault/audit/proofs.ts';
import type { InitialKeys } from '../../vault/keys/keyset.ts';
import { insertCheckpoint, readCheckpoint, readLastSeq, readPosition, savePosition } from '../audit-log.ts';
import type { Dialect } from '../dialect.ts';
import type { DiskMeasures, Store, StoreMeasures, StreamLog } from '../port.ts';
import { KEY_SLOTS, KEYSET } from '../schema.ts';
import { type Procedure, sql } from '../statement.ts';
import type { Committed, Head, LoadedView, LogLocation, StoreTransaction, WriteSet } from '../stored-data.ts';
import { insertVault } from '../vault-metadata.ts';
import { AccessCounts, type CountingOptions, type CountRowId } from './access-counts.ts';
import { Checkpointer, type CheckpointOptions } from './checkpointer.ts';
import { inTransaction, openDatabase, toStoreError } from './database.ts';
import { sqliteDialect } from './dialect.ts';
import { assertServingSpace } from './disk-space.ts';
import { CredentialCache, type LoadResult, RowLoader } from './loader.ts';
import { SqliteLogFile } from './log-file.ts';
import { Statements } from './statements.ts';
import { Sweeper } from './sweeper.ts';
import { type KeepNewest, type SyncFile, WalSync } from './wal-sync.ts';
import { SqliteBatchWriter } from './writer.ts';

interface SqliteOptions {
  readonly keepNewest?: KeepNewest;
  readonly syncFile?: SyncFile | undefined;
  readonly checkpoints?: CheckpointOptions;
  readonly counting?: CountingOptions;
}

export class SqliteStore implements Store {
  readonly isMultiWriter = false;
  readonly measures: StoreMeasures;
  readonly dialect: Dialect;
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #counts: AccessCounts;
  readonly #cache: CredentialCache;
  readonly #loader: RowLoader;
  readonly #writer: SqliteBatchWriter;
  readonly #sweeper: Sweeper;
  readonly #countIdOf: StatementSync;
  readonly #walSync: WalSync;
  readonly #checkpointer: Checkpointer;

  /** Opens or creates the file. The options other than `keepNewest` are for tests. @throws StoreError */
  constructor(file: string, { keepNewest, syncFile, checkpoints, counting }: SqliteOptions = {}) {
    this.#file = file;
    this.#database = openDatabase(file);
    this.#statements = new Statements(this.#database);
    try {
      this.#counts = new AccessCounts(this.#database, counting);
      this.#cache = new CredentialCache(this.#database);
      this.#loader = new RowLoader(this.#database, this.#cache);
      this.#writer = new SqliteBatchWriter(this.#database, this.#counts);
      this.dialect = sqliteDialect(this.#counts);
      this.#sweeper = new Sweeper(this.#database);
      this.#countIdOf = this.#database.prepare('SELECT count_id FROM credentials WHERE id = ?');
      this.#walSync = new WalSync(file, syncFile, keepNewest);
      this.#checkpointer = new Checkpointer(this.#database, file, checkpoints);
      this.measures = { disk: this.#diskMeasures(file), connections: null };
    } catch (error) {
      this.#database.close();
      throw toStoreError(error);
    }
  }

  #diskMeasures(file: string): DiskMeasures {
    return {
      syncSeconds: this.#walSync.syncSeconds,
      checkpointSeconds: this.#checkpointer.seconds,
      pendingPages: () => this.#checkpointer.pendingPages,
      walBytes: () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    };
  }

  see(): void {
    // No other process writes to the file.
  }

  async locateLog(): Promise<LogLocation> {
    return { kind: 'sqlite', file: this.#file };
  }

  initialise(keyCheck: string, { seq, hmac, mac, epoch, tree, control }: Head, now: number, keys: InitialKeys) {
    return this.#write(() =>
      inTransaction(this.#database, () => {
        this.#statements.write(insertVault(keyCheck, keys.vaultId, now, now));
        this.#statements.insert(KEYSET, { id: 1, ...keys.keyset });
        for (const slot of keys.slots) this.#statements.insert(KEY_SLOTS, slot);
        this.#statements.write(
          sql`INSERT INTO audit_head VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch}, 0, ${tree}, ${control})`,
        );
      }),
    );
  }

  async begin(reads: readonly ReadSet[]): Promise<StoreTransaction> {
    try {
      await this.#checkpointer.waitUntilWritable();
      const { found, countIds } = this.#load(reads);
      return {
        found,
        shared: null,
        commit: (batch) => this.#commit(batch, countIds),
        rollback: async () => undefined,
      };
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async load(reads: readonly ReadSet[]): Promise<LoadedView> {
    try {
      return { found: this.#load(reads).found, shared: null, durable: this.#walSync.idle() };
    } catch (error) {
      throw toStoreError(error);
    }
  }

  #load(reads: readonly ReadSet[]): LoadResult {
    this.#walSync.assertInPlace();
    assertServingSpace(this.#file);
    return this.#loader.load(reads);
  }

  async addCheckpoint(checkpoint: StoredCheckpoint) {
    await this.#write(() => this.#statements.write(insertCheckpoint(checkpoint)));
    return (await this.run(readCheckpoint(checkpoint.generation, checkpoint.size))) ?? checkpoint;
  }

  readAccessCount(credentialId: CredentialId) {
    return this.#read(() => {
      const countId = this.#countIdOf.get(credentialId)?.['count_id'];
      return typeof countId === 'number' ? this.#counts.get(countId) : 0;
    });
  }

  async readTime(): Promise<null> {
    return null;
  }

  sweep(now: number, limit: number) {
    return this.#write(() => {
      this.#writer.leaseBlocks.reset();
      return this.#sweeper.sweep(now, limit);
    });
  }

  /** Entries are read over a separate connection; only the store knows which of them are durable. */
  openStreamLog(): StreamLog {
    try {
      const file = new SqliteLogFile(this.#file);
      return {
        // One process owns the file.
        claim: async () => true,
        readEnd: () => this.run(readLastSeq()),
        readEntries: (fromSeq, toSeq, limit) => file.readEntries(fromSeq, toSeq, limit),
        readPosition: (name) => this.run(readPosition(name)),
        savePosition: (name, seq) => this.#write(() => this.#statements.run(savePosition(name, seq))),
        close: () => file.close(),
      };
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async close() {
    await this.#walSync.close();
    await this.#checkpointer.close();
    this.#database.close();
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

  run<T>(procedure: Procedure<T>): Promise<T> {
    return this.#read(() => this.#statements.run(procedure));
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
