/** Copies a vault from or to a SQLite file that no other process uses. A source is a private copy. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { CredentialId } from '../../core/names.ts';
import { type Row, toLoadedCredential, toVersion } from '../decode-rows.ts';
import type { WriteSet } from '../store.ts';
import type { TableReader, TableWriter, TransferMetadata, VaultMetadata } from '../transfer.ts';
import type { RowKey, Table } from '../transfer-schema.ts';
import { AccessCounts } from './access-counts.ts';
import { CredentialWriter } from './credential-writer.ts';
import { inTransaction, openDatabase, toStoreError } from './database.ts';
import { LeaseBlockWriter } from './lease-blocks.ts';
import { Log } from './log.ts';
import { uncountedRetrievals } from './recover-counts.ts';
import { Statements } from './statements.ts';

/** Replaces tables whose rows are stored differently: all versions, and the count of every credential. */
const FROM: Readonly<Record<string, string>> = {
  credential_versions: `(SELECT credential_id, version, type, created_at, sealed FROM credential_versions
    UNION ALL SELECT id, version, type, newest_at, newest_sealed FROM credentials WHERE newest_sealed IS NOT NULL)`,
  access_counts: `(SELECT c.id AS credential_id, min(max(coalesce(a.count, 0), 0), ${Number.MAX_SAFE_INTEGER}) AS count
    FROM credentials c LEFT JOIN access_counts a ON a.count_id = c.count_id)`,
};
/** Pages of 8 KiB. */
const CHECKPOINT_PAGES = 4096;

class SqliteTableReader implements TableReader {
  protected readonly database: DatabaseSync;
  protected readonly statements: Statements;

  /** @throws StoreError */
  constructor(file: string) {
    this.database = openDatabase(file);
    this.statements = new Statements(this.database);
  }

  async readRecords(): Promise<VaultMetadata | null> {
    const [vault] = this.select('SELECT key_check, created_at, high_water_time FROM vault', []);
    if (vault === undefined) return null;
    return {
      keyCheck: String(vault['key_check']),
      createdAt: Number(vault['created_at']),
      highWaterTime: Number(vault['high_water_time']),
      head: new Log(this.database).head().head,
    };
  }

  async count({ name }: Table): Promise<number> {
    return Number(this.select(`SELECT count(*) AS n FROM ${FROM[name] ?? name}`, [])[0]?.['n']);
  }

  async read({ name, key, columns }: Table, after: RowKey, through: RowKey | null, limit: number): Promise<Row[]> {
    const [names, places] = [key.join(', '), key.map(() => '?').join(', ')];
    const end = through === null ? '' : `AND (${names}) <= (${places})`;
    return this.select(
      `SELECT ${Object.keys(columns).join(', ')} FROM ${FROM[name] ?? name}
       WHERE (${names}) > (${places}) ${end} ORDER BY ${names} LIMIT ?`,
      [...after, ...(through ?? []), limit],
    );
  }

  close(): void {
    this.database.close();
  }

  protected select(text: string, values: readonly SQLInputValue[]): Row[] {
    try {
      return this.statements.prepare(text).all(...values);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  protected async write(work: () => void): Promise<void> {
    try {
      inTransaction(this.database, work);
    } catch (error) {
      throw toStoreError(error);
    }
  }
}

/** Writes to the copy. */
export class SqliteSource extends SqliteTableReader {
  /** Adds the retrievals that only the log holds to the count rows, as a start does in memory. */
  addUpAccesses(): Promise<void> {
    return this.write(() => {
      const lastSeq = new Log(this.database).head().last?.seq ?? 0;
      const [head] = this.select('SELECT counted_through_seq AS seq FROM audit_head', []);
      const steps = uncountedRetrievals(this.database, Math.max(0, Number(head?.['seq'] ?? lastSeq)), lastSeq);
      let step = steps.next();
      while (!step.done) step = steps.next();
      const add = this.statements.prepare('UPDATE access_counts SET count = max(count, 0) + ? WHERE count_id = ?');
      for (const [countId, count] of step.value) add.run(count, countId);
    });
  }
}

export class SqliteTarget extends SqliteTableReader implements TableWriter {
  readonly #metadata: TransferMetadata;
  readonly #counts: AccessCounts;
  readonly #credentials: CredentialWriter;
  readonly #leaseBlocks: LeaseBlockWriter;

  /** @throws StoreError */
  constructor(file: string, metadata: TransferMetadata) {
    super(file);
    this.#metadata = metadata;
    this.#counts = new AccessCounts(this.database);
    this.#credentials = new CredentialWriter(this.statements, this.#counts);
    this.#leaseBlocks = new LeaseBlockWriter(this.database);
    this.database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  }

  remove(table: Table, keys: readonly RowKey[]): Promise<void> {
    return this.write(() => {
      for (const key of keys) this.#remove(table, key);
    });
  }

  async add(table: Table, rows: readonly Row[]): Promise<void> {
    try {
      await this.write(() => {
        for (const row of rows) this.#add(table, row);
      });
    } catch (error) {
      this.#leaseBlocks.reset();
      throw error;
    }
  }

  async commitMetadata(): Promise<void> {
    const { records, highestSeq } = this.#metadata;
    const { keyCheck, createdAt, highWaterTime, head } = records;
    await this.write(() => {
      this.#run('INSERT INTO vault VALUES (1, ?, ?, ?)', keyCheck, createdAt, highWaterTime);
      if (head === null) return;
      const { seq, hmac, mac, epoch } = head;
      this.#run('INSERT INTO audit_head VALUES (1, ?, ?, ?, ?, ?)', seq, hmac, mac, epoch, highestSeq);
    });
    // Commits are not synced; this checkpoint is.
    this.select('PRAGMA wal_checkpoint(TRUNCATE)', []);
  }

  override close(): void {
    this.#counts.close();
    super.close();
  }

  #remove({ name, key: columns }: Table, key: RowKey): void {
    if (name === 'credentials') {
      const [row] = this.select('SELECT id FROM credentials WHERE path = ?', key);
      if (row !== undefined) this.#credentials.remove(toId(row['id']));
      return;
    }
    // Deleted with its credential; otherwise overwritten.
    if (name === 'access_counts') return;
    if (name === 'credential_versions') {
      this.#run('UPDATE credentials SET newest_at = NULL, newest_sealed = NULL WHERE id = ? AND version = ?', ...key);
    }
    this.#run(`DELETE FROM ${name} WHERE ${columns.map((column) => `${column} = ?`).join(' AND ')}`, ...key);
  }

  #add({ name, columns }: Table, row: Row): void {
    if (name === 'credentials') {
      this.#credentials.put(toLoadedCredential(row), this.#asBatch());
    } else if (name === 'credential_versions') {
      const { content, ...version } = toVersion(row);
      if (content instanceof Uint8Array) this.#credentials.addVersion(toId(row['credential_id']), version, content);
    } else if (name === 'access_counts') {
      const { credential_id: id, count } = row;
      this.#run(
        'UPDATE access_counts SET count = ? WHERE count_id = (SELECT count_id FROM credentials WHERE id = ?)',
        toValue(count),
        toValue(id),
      );
    } else {
      const names = Object.keys(columns);
      this.#run(
        `INSERT INTO ${name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
        ...names.map((column) => toValue(row[column])),
      );
      if (name === 'leases') this.#leaseBlocks.add(String(row['agent_name']), Number(row['seq']));
    }
  }

  /** A new credential takes its `through_seq` from the head. */
  #asBatch(): WriteSet {
    const head = { seq: this.#metadata.highestSeq, hmac: '', mac: '', epoch: 0 };
    return { entries: [], head, changes: [], accesses: new Map() };
  }

  #run(text: string, ...values: readonly SQLInputValue[]): void {
    this.statements.prepare(text).run(...values);
  }
}

const toId = (value: unknown): CredentialId => String(value) as CredentialId;

function toValue(value: unknown): SQLInputValue {
  return typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array ? value : null;
}
