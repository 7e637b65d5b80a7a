/** Reads a vault from PostgreSQL, without changing it, and writes one into an empty database. */
import { HELD_RESOURCES } from '../../core/resources.ts';
import { StoreError } from '../errors.ts';
import { RESOURCE_TABLES, TABLES } from '../schema.ts';
import { type Procedure, type Row, raw, type Statement, sql } from '../statement.ts';
import type { SeenEntry } from '../stored-data.ts';
import type { Table } from '../table.ts';
import {
  assertNumbers,
  CHUNK_ROWS,
  countRows,
  selectRows,
  type TransferSource,
  type TransferTarget,
  type VaultMetadata,
} from '../transfer.ts';
import { insertVault, isEmpty, readRootKeyCheck } from '../vault-metadata.ts';
import { Connection } from './connection.ts';
import type { PostgresAddress } from './database-url.ts';
import { insertHead } from './dialect.ts';
import type { Purpose } from './driver.ts';
import { sqlStateOf, toStoreError } from './errors.ts';
import { assertContains } from './fence.ts';
import { insertItems } from './insert-rows.ts';

// SOURCE: postgresql.org/docs/current/errcodes-appendix.html.
const LOCK_NOT_AVAILABLE = '55P03';
const UNTRANSLATABLE = '22P05';

/** The tables whose rows have the epoch of the batch that wrote them. */
const WITH_EPOCH: ReadonlySet<string> = new Set(HELD_RESOURCES.map((resource) => RESOURCE_TABLES[resource].name));

/** A transaction without time-outs, on a separate connection. It ends with its connection. */
class Transaction {
  readonly #connection: Connection;

  protected constructor(connection: Connection) {
    this.#connection = connection;
  }

  protected static async connect(address: PostgresAddress, purpose: Purpose, mode: string): Promise<Connection> {
    const connection = await Connection.open(address, purpose);
    try {
      await connection.script(
        `BEGIN ISOLATION LEVEL ${mode}; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0;`,
      );
      return connection;
    } catch (error) {
      connection.close();
      throw toStoreError(error);
    }
  }

  async run<T>(procedure: Procedure<T>): Promise<T> {
    try {
      return await this.#connection.run(procedure);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  close(): void {
    this.#connection.close();
  }
}

function* execute(statement: Statement): Procedure<void> {
  yield statement;
}

function* fetchRows(statement: Statement): Procedure<readonly Row[]> {
  return yield statement;
}

/** Reads one snapshot. */
export class PostgresSource extends Transaction implements TransferSource {
  /** A count is the stored count plus the retrievals that it does not include yet. */
  readonly views = {
    access_counts: `(SELECT c.id AS credential_id, coalesce(a.count, 0) + coalesce(b.n, 0) AS count FROM credentials c
      LEFT JOIN access_counts a ON a.credential_id = c.id
      LEFT JOIN (SELECT credential_id, count(*) AS n FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress)
        AND kind = 'retrieve' GROUP BY credential_id) b ON b.credential_id = c.id) AS counted`,
  };

  /**
   * WHY a cursor and not a query for each chunk: without statistics of the tables, each query for a chunk of counts
   * would compute all of them. The next chunk is on its way while the caller works on one.
   */
  async *scan(table: Table<object>): AsyncGenerator<readonly Row[]> {
    const cursor = raw(`scan_${table.name}`);
    await this.run(execute(sql`DECLARE ${cursor} NO SCROLL CURSOR FOR ${selectRows(table, this.views)}`));
    const fetchChunk = (): Promise<readonly Row[]> => {
      const fetched = this.run(fetchRows(sql`FETCH ${raw(String(CHUNK_ROWS))} FROM ${cursor}`));
      // A caller that stops early does not wait for it.
      fetched.catch(() => undefined);
      return fetched;
    };
    for (let next: Promise<readonly Row[]> | null = fetchChunk(); next !== null; ) {
      const rows: readonly Row[] = await next;
      next = rows.length === CHUNK_ROWS ? fetchChunk() : null;
      assertNumbers(table, rows);
      if (rows.length > 0) yield rows;
    }
    await this.run(execute(sql`CLOSE ${cursor}`));
  }

  /** `seen` is an entry that the snapshot must contain. @throws StoreError */
  static async open(address: PostgresAddress, seen: SeenEntry | null = null): Promise<PostgresSource> {
    const connection = await Transaction.connect(address, 'reading', 'REPEATABLE READ READ ONLY');
    try {
      await assertContains(connection, seen);
      return new PostgresSource(connection);
    } catch (error) {
      connection.close();
      throw toStoreError(error);
    }
  }
}

/** Replaces the check value of the root key, so that no node starts on a copy before it is published. */
const UNPUBLISHED = 'unpublished';

/** Writes a vault in one transaction. */
export class PostgresTarget extends Transaction implements TransferTarget {
  readonly #metadata: VaultMetadata;

  private constructor(connection: Connection, metadata: VaultMetadata) {
    super(connection);
    this.#metadata = metadata;
  }

  /** The schema must exist. Null if the database is not empty. @throws StoreError */
  static async open(address: PostgresAddress, metadata: VaultMetadata): Promise<PostgresTarget | null> {
    const target = new PostgresTarget(await Transaction.connect(address, 'writing', 'READ COMMITTED'), metadata);
    try {
      // The lock makes another restore wait, and keeps nodes from creating a vault.
      await target.run(execute(sql`LOCK TABLE vault IN EXCLUSIVE MODE`));
      if ((await target.run(isEmpty())) && (await target.run(readRootKeyCheck())) === null) return target;
      target.close();
      return null;
    } catch (error) {
      target.close();
      if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new StoreError('unavailable', 'another restore into this database is running, or a node starts on it', {
        cause: error,
      });
    }
  }

  async insert(table: Table<object>, rows: readonly Row[]): Promise<void> {
    // Nodes read all of these rows at startup; the epoch of the head is safe for later changes.
    const epoch = WITH_EPOCH.has(table.name) ? (this.#metadata.head?.epoch ?? 0) : null;
    const items = rows.map((row) => table.decode(row));
    await this.run(execute(insertItems(table, items, epoch))).catch((error: unknown) => {
      if (sqlStateOf(error) !== UNTRANSLATABLE) throw error;
      throw new StoreError('unavailable', `a text in ${table.name} contains U+0000, which PostgreSQL cannot store`, {
        cause: error,
      });
    });
  }

  count(table: Table<object>): Promise<number> {
    return this.run(countRows(table));
  }

  async commit(): Promise<void> {
    const { vaultId, createdAt, highWaterTime, head, highestSeq } = this.#metadata;
    const statements = [
      insertVault(UNPUBLISHED, vaultId, createdAt, highWaterTime),
      sql`INSERT INTO access_count_progress (id, through_seq) VALUES (1, ${highestSeq})`,
      ...(head === null ? [] : [insertHead(head)]),
      // The copy is verified before the server would collect statistics, without which it scans whole tables.
      raw(`ANALYZE ${TABLES.map(({ name }) => name).join(', ')}`),
      raw('COMMIT'),
    ];
    for (const statement of statements) await this.run(execute(statement));
  }

  /** Turns the committed copy into a vault. @throws StoreError */
  publish(): Promise<void> {
    return this.run(execute(sql`UPDATE vault SET key_check = ${this.#metadata.keyCheck}`));
  }

  /** Deletes the committed copy. @throws StoreError */
  discard(): Promise<void> {
    const tables = [...TABLES.map(({ name }) => name), 'access_count_progress', 'audit_head', 'vault'];
    return this.run(execute(sql`TRUNCATE ${raw(tables.join(', '))}`));
  }
}
