/** Reads a vault from a private copy of a SQLite file, and writes one into a new file. */
import type { DatabaseSync } from 'node:sqlite';
import { ACCESS_COUNTS, CREDENTIAL_VERSIONS, CREDENTIALS, LEASES } from '../schema.ts';
import { type Procedure, type Row, sql } from '../statement.ts';
import type { Table } from '../table.ts';
import { countRows, scanByKey, type TransferSource, type TransferTarget, type VaultMetadata } from '../transfer.ts';
import { insertVault } from '../vault-metadata.ts';
import { AccessCounts } from './access-counts.ts';
import { inTransaction, openDatabase, toStoreError } from './database.ts';
import { LeaseBlockWriter } from './lease-blocks.ts';
import { Statements } from './statements.ts';
import { CredentialWriter } from './writer.ts';

/** Pages of 8 KiB. */
const CHECKPOINT_PAGES = 4096;

function withStoreErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toStoreError(error);
  }
}

/** All versions, and the count of every credential: they are stored differently. */
const VIEWS = {
  credential_versions: `(SELECT credential_id, version, type, created_at, sealed FROM credential_versions
    UNION ALL SELECT id, version, type, newest_at, newest_sealed FROM credentials WHERE newest_sealed IS NOT NULL)`,
  access_counts: `(SELECT c.id AS credential_id, min(max(coalesce(a.count, 0), 0), ${Number.MAX_SAFE_INTEGER}) AS count
    FROM credentials c LEFT JOIN access_counts a ON a.count_id = c.count_id)`,
};

export class SqliteSource implements TransferSource {
  readonly views = VIEWS;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;

  /** Adds the retrievals that only the audit log holds to the counts. @throws StoreError */
  constructor(file: string) {
    this.#database = openDatabase(file);
    this.#statements = new Statements(this.#database);
    withStoreErrors(() => inTransaction(this.#database, () => new AccessCounts(this.#database).writeAll()));
  }

  async run<T>(procedure: Procedure<T>): Promise<T> {
    return withStoreErrors(() => this.#statements.run(procedure));
  }

  scan(table: Table<object>) {
    return scanByKey(this, table);
  }

  close(): void {
    this.#database.close();
  }
}

export class SqliteTarget implements TransferTarget {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #metadata: VaultMetadata;
  readonly #counts: AccessCounts;
  readonly #credentials: CredentialWriter;
  readonly #leaseBlocks: LeaseBlockWriter;

  /** The file must not exist; the caller renames it when it is complete. @throws StoreError */
  constructor(file: string, metadata: VaultMetadata) {
    this.#database = openDatabase(file);
    this.#statements = new Statements(this.#database);
    this.#metadata = metadata;
    this.#counts = new AccessCounts(this.#database);
    this.#credentials = new CredentialWriter(this.#statements, this.#counts);
    this.#leaseBlocks = new LeaseBlockWriter(this.#database);
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  }

  async insert(table: Table<object>, rows: readonly Row[]): Promise<void> {
    this.#write(() => {
      for (const row of rows) this.#insert(table, row);
    });
  }

  async count(table: Table<object>): Promise<number> {
    return withStoreErrors(() => this.#statements.run(countRows(table, VIEWS)));
  }

  async commit(): Promise<void> {
    const { keyCheck, vaultId, createdAt, highWaterTime, head, highestSeq } = this.#metadata;
    this.#write(() => {
      this.#statements.write(insertVault(keyCheck, vaultId, createdAt, highWaterTime));
      if (head === null) return;
      const { seq, hmac, mac, epoch, tree, control } = head;
      this.#statements.write(
        sql`INSERT INTO audit_head VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch}, ${highestSeq}, ${tree}, ${control})`,
      );
    });
    // Commits are not synced; this checkpoint is.
    withStoreErrors(() => this.#statements.read(sql`PRAGMA wal_checkpoint(TRUNCATE)`));
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #write(work: () => void): void {
    withStoreErrors(() => inTransaction(this.#database, work));
  }

  #insert(table: Table<object>, row: Row): void {
    switch (table) {
      case CREDENTIALS:
        this.#credentials.insert(CREDENTIALS.decode(row), this.#counts.insert(0, this.#metadata.highestSeq));
        return;
      case CREDENTIAL_VERSIONS: {
        const { credentialId, sealed, ...version } = CREDENTIAL_VERSIONS.decode(row);
        this.#credentials.addVersion(credentialId, version, sealed);
        return;
      }
      case ACCESS_COUNTS: {
        const { credentialId, count } = ACCESS_COUNTS.decode(row);
        this.#statements.write(sql`UPDATE access_counts SET count = ${count}
          WHERE count_id = (SELECT count_id FROM credentials WHERE id = ${credentialId})`);
        return;
      }
    }
    this.#statements.insert(table, table.decode(row));
    if (table === LEASES) this.#leaseBlocks.add(String(row['agent_name']), Number(row['seq']));
  }
}
