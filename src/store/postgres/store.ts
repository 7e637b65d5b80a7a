/** The PostgreSQL store, which several nodes share. The row lock on `audit_head` serializes their transactions. */

import type { ReadSet } from '../../core/batch-state.ts';
import type { CredentialId } from '../../core/names.ts';
import type { StoredCheckpoint } from '../../vault/audit/proofs.ts';
import type { InitialKeys } from '../../vault/keys/keyset.ts';
import { insertCheckpoint, readCheckpoint } from '../audit-log.ts';
import { StoreError } from '../errors.ts';
import type { Store, StoreMeasures, StreamLog } from '../port.ts';
import { KEY_SLOTS, KEYSET } from '../schema.ts';
import type { Procedure } from '../statement.ts';
import type {
  Committed,
  Head,
  LoadedView,
  LogLocation,
  SeenEntry,
  StoreTransaction,
  SweepResult,
  WriteSet,
} from '../stored-data.ts';
import { insertVault } from '../vault-metadata.ts';
import type { Connection } from './connection.ts';
import { Hosts } from './database-hosts.ts';
import type { PostgresAddress } from './database-url.ts';
import { insertHead, POSTGRES_DIALECT, readAccessCount } from './dialect.ts';
import { insertItems } from './insert-rows.ts';
import { prepareSchema } from './migrate.ts';
import { Pool } from './pool.ts';
import { assertPrivileges } from './privileges.ts';
import { PostgresStreamLog } from './stream-log.ts';
import { sweep } from './sweeper.ts';
import { beginTransaction, loadUnlocked, prepareTransactions } from './transaction.ts';

/** Connections for other reads than urgent ones. Transactions and urgent reads have one connection each. */
const READ_CONNECTIONS = 3;
/** A migration may wait for the migration of another node, and rewrite large tables. */
const MIGRATION_TIMEOUT_MS = 15 * 60_000;
/** A connection that was lost before its use fails within this time. */
const IMMEDIATE_LOSS_MS = 500;

export class PostgresStore implements Store {
  readonly isMultiWriter = true;
  readonly dialect = POSTGRES_DIALECT;
  readonly measures: StoreMeasures;
  readonly #hosts: Hosts;
  readonly #pool: Pool;
  /** For reads that precede a batch or a list, such as reads of sessions, so that they do not queue behind lists. */
  readonly #priorityPool: Pool;
  #connection: Connection | null = null;
  #isClosed = false;

  private constructor(address: PostgresAddress) {
    this.#hosts = new Hosts(address);
    this.#pool = new Pool(this.#hosts, READ_CONNECTIONS);
    this.#priorityPool = new Pool(this.#hosts, 1);
    const pools = [this.#pool, this.#priorityPool];
    const sum = (amounts: readonly number[]): number => amounts.reduce((total, amount) => total + amount, 0);
    const connections = {
      inUse: () => sum(pools.map(({ inUse }) => inUse)),
      waiting: () => sum(pools.map(({ waiting }) => waiting)),
    };
    this.measures = { disk: null, connections };
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

  see(entry: SeenEntry | null): void {
    this.#hosts.see(entry);
  }

  locateLog(): Promise<LogLocation> {
    return this.#hosts.locate();
  }

  /** The hosts that did not respond when the current one was chosen, so that their logs were not compared. */
  get unanswered(): readonly string[] {
    return this.#hosts.unanswered;
  }

  initialise(keyCheck: string, head: Head, now: number, keys: InitialKeys): Promise<void> {
    return this.#pool.use((connection) =>
      atomically(connection, async () => {
        await connection.execute(insertVault(keyCheck, keys.vaultId, now, now));
        await connection.query`INSERT INTO access_count_progress (id, through_seq) VALUES (1, 0)`;
        await connection.execute(insertItems(KEYSET, [{ id: 1, ...keys.keyset }]));
        await connection.execute(insertItems(KEY_SLOTS, keys.slots));
        await connection.execute(insertHead(head));
      }),
    );
  }

  async begin(keys: readonly ReadSet[]): Promise<StoreTransaction> {
    const transaction = await this.#hosts.guard(() => this.#open(keys));
    return { ...transaction, commit: (batch) => this.#commit(transaction, batch) };
  }

  load(reads: readonly ReadSet[]): Promise<LoadedView> {
    return this.#priorityPool.read((connection) => loadUnlocked(connection, reads));
  }

  /** Retries once after a lost connection: nothing was written yet, and another server may have taken over. */
  async #open(keys: readonly ReadSet[]): Promise<StoreTransaction> {
    const connection = await this.#writingConnection();
    const startedAt = performance.now();
    try {
      return await beginTransaction(connection, keys, this.#hosts.seen);
    } catch (error) {
      if (connection.isOpen) throw error;
      for (const pool of [this.#pool, this.#priorityPool]) pool.closeIdle();
      if (performance.now() - startedAt > IMMEDIATE_LOSS_MS) throw error;
      return beginTransaction(await this.#writingConnection(), keys, this.#hosts.seen);
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
    this.#connection = await this.#hosts.connect('writing');
    await prepareTransactions(this.#connection);
    return this.#connection;
  }

  async addCheckpoint(checkpoint: StoredCheckpoint) {
    await this.#pool.use((connection) => connection.execute(insertCheckpoint(checkpoint)));
    return (await this.run(readCheckpoint(checkpoint.generation, checkpoint.size))) ?? checkpoint;
  }

  readAccessCount(credentialId: CredentialId): Promise<number> {
    return this.run(readAccessCount(credentialId));
  }

  readTime(): Promise<number> {
    return this.#pool.read(async (connection) => {
      const [row] = await connection.query`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`;
      return Number(row?.['now']);
    });
  }

  sweep(now: number, limit: number): Promise<SweepResult> {
    return this.#pool.use((connection) => sweep(connection, now, limit));
  }

  run<T>(procedure: Procedure<T>, priority?: 'urgent'): Promise<T> {
    return (priority === 'urgent' ? this.#priorityPool : this.#pool).read((connection) => connection.run(procedure));
  }

  openStreamLog(): StreamLog {
    return new PostgresStreamLog(this.#hosts);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#connection?.close();
    this.#pool.close();
    this.#priorityPool.close();
  }
}

/** Runs the work in one transaction. After an error nothing was written, unless the connection was lost. */
async function atomically<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.query`BEGIN`;
  try {
    const result = await work();
    await connection.query`COMMIT`;
    return result;
  } catch (error) {
    await connection.query`ROLLBACK`.catch(() => connection.close());
    throw error;
  }
}
