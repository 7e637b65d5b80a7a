/** Copies a vault from PostgreSQL, without changing it, or to PostgreSQL. */
import type { Row } from '../decode-rows.ts';
import { StoreError } from '../errors.ts';
import type { TableReader, TableWriter, TransferMetadata, VaultMetadata } from '../transfer.ts';
import type { ColumnKind, RowKey, Table } from '../transfer-schema.ts';
import type { PostgresAddress } from './address.ts';
import { Connection, type Value } from './connection.ts';
import { sqlStateOf, toStoreError } from './errors.ts';
import { toHead } from './transaction.ts';

/** Advisory lock key: 'move'. */
const TRANSFER_LOCK = 0x6d6f7665;
// SOURCE: postgresql.org/docs/current/errcodes-appendix.html.
const LOCK_NOT_AVAILABLE = '55P03';
const UNTRANSLATABLE = '22P05';

const TYPES: Readonly<Record<ColumnKind, string>> = { text: 'text', number: 'bigint', bytes: 'text' };

/** Access counts of a source: the stored counts plus the leases since. */
const COUNTED = `(SELECT c.id AS credential_id, coalesce(a.count, 0) + coalesce(b.n, 0) AS count FROM credentials c
  LEFT JOIN access_counts a ON a.credential_id = c.id
  LEFT JOIN (SELECT credential_id, count(*) AS n FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress)
    GROUP BY credential_id) b ON b.credential_id = c.id) AS counted`;

class PostgresTableReader implements TableReader {
  readonly #connection: Connection;
  readonly #counts: string;

  protected constructor(connection: Connection, counts: string) {
    this.#connection = connection;
    this.#counts = counts;
  }

  async readRecords(): Promise<VaultMetadata | null> {
    const [vault] = await this.run('SELECT key_check, created_at, high_water_time FROM vault', []);
    if (vault === undefined) return null;
    const [head] = await this.run('SELECT seq, hmac, mac, epoch FROM audit_head', []);
    return {
      keyCheck: String(vault['key_check']),
      createdAt: Number(vault['created_at']),
      highWaterTime: Number(vault['high_water_time']),
      head: toHead(head),
    };
  }

  async count(table: Table): Promise<number> {
    const [row] = await this.run(`SELECT count(*) AS n FROM ${this.#from(table)}`, []);
    return Number(row?.['n']);
  }

  async read(table: Table, after: RowKey, through: RowKey | null, limit: number): Promise<Row[]> {
    const { key, columns } = table;
    const places = (from: number): string =>
      key.map((column, at) => `$${from + at}::${TYPES[columns[column] ?? 'text']}`).join(', ');
    const end = through === null ? '' : `AND (${key.join(', ')}) <= (${places(key.length + 1)})`;
    const rows = await this.run(
      `SELECT ${quoted(columns)} FROM ${this.#from(table)}
       WHERE (${key.join(', ')}) > (${places(1)}) ${end} ORDER BY ${key.join(', ')} LIMIT ${limit}`,
      [...after, ...(through ?? [])],
    );
    for (const row of rows) assertExact(table, row);
    return [...rows];
  }

  close(): void {
    this.#connection.close();
  }

  protected async run(text: string, values: readonly Value[]): Promise<readonly Row[]> {
    try {
      return await this.#connection.run(text, values);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  #from({ name }: Table): string {
    return name === 'access_counts' ? this.#counts : name;
  }
}

/** Whether the schema exists. Writes nothing. @throws StoreError */
export async function hasSchema(address: PostgresAddress): Promise<boolean> {
  const connection = await Connection.open(address, 'reading');
  try {
    const [row] = await connection.query`SELECT to_regclass('leasehold.vault') IS NOT NULL AS is_there`;
    return row?.['is_there'] === true;
  } catch (error) {
    throw toStoreError(error);
  } finally {
    connection.close();
  }
}

/** Reads one snapshot in a read-only transaction. */
export class PostgresSource extends PostgresTableReader {
  /** @throws StoreError */
  static async open(address: PostgresAddress): Promise<PostgresSource> {
    const connection = await Connection.open(address, 'reading');
    const source = new PostgresSource(connection, COUNTED);
    try {
      await connection.script(
        `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0;
         SET LOCAL statement_timeout = 0;`,
      );
      return source;
    } catch (error) {
      source.close();
      throw toStoreError(error);
    }
  }
}

export class PostgresTarget extends PostgresTableReader implements TableWriter {
  readonly #metadata: TransferMetadata;

  private constructor(connection: Connection, metadata: TransferMetadata) {
    super(connection, 'access_counts');
    this.#metadata = metadata;
  }

  /** Allows one migration at a time. The schema must exist. @throws StoreError */
  static async open(address: PostgresAddress, metadata: TransferMetadata): Promise<PostgresTarget> {
    const connection = await Connection.open(address, 'writing');
    const target = new PostgresTarget(connection, metadata);
    try {
      // A migration that was just killed may still hold the lock: wait up to the lock time-out.
      await target.run(`SELECT pg_advisory_lock(${TRANSFER_LOCK}, 0)`, []);
      return target;
    } catch (error) {
      target.close();
      const isTaken = sqlStateOf(error) === LOCK_NOT_AVAILABLE;
      throw isTaken ? new StoreError('unavailable', 'another move into this database is under way') : error;
    }
  }

  async remove({ name, key, columns }: Table, keys: readonly RowKey[]): Promise<void> {
    const rows = keys.map((each) => Object.fromEntries(key.map((column, at) => [column, each[at]])));
    const types = key.map((column) => `${column} ${TYPES[columns[column] ?? 'text']}`).join(', ');
    const isSame = key.map((column) => `t.${column} = r.${column}`).join(' AND ');
    await this.run(`DELETE FROM ${name} t USING json_to_recordset($1::text::json) AS r (${types}) WHERE ${isSame}`, [
      JSON.stringify(rows),
    ]);
  }

  async add(table: Table, rows: readonly Row[]): Promise<void> {
    const { name } = table;
    // Nodes read all of these rows at the start; the epoch of the head is safe for later changes.
    const isControl = name === 'agents' || name === 'policies';
    const [epoch, ofHead] = isControl ? [', epoch', `, ${this.#metadata.records.head?.epoch ?? 0}`] : ['', ''];
    const columns = Object.entries(table.columns);
    const values = columns.map(([column, kind]) =>
      kind === 'bytes' ? `decode("${column}", 'base64')` : `"${column}"`,
    );
    const types = columns.map(([column, kind]) => `"${column}" ${TYPES[kind]}`).join(', ');
    await this.run(
      `INSERT INTO ${name} (${quoted(table.columns)}${epoch})
       SELECT ${values.join(', ')}${ofHead} FROM json_to_recordset($1::text::json) AS r (${types})`,
      [toJson(table, rows)],
    ).catch((error: unknown) => {
      if (sqlStateOf(error) !== UNTRANSLATABLE) throw error;
      throw new StoreError('unavailable', `a text in ${name} holds U+0000, which PostgreSQL cannot hold`, {
        cause: error,
      });
    });
  }

  async commitMetadata(): Promise<void> {
    const { records, highestSeq } = this.#metadata;
    const { keyCheck, createdAt, highWaterTime, head } = records;
    // One statement, therefore atomic.
    const heads =
      head === null ? '' : ', known AS (INSERT INTO audit_head (id, seq, hmac, mac, epoch) VALUES (1, $5, $6, $7, $8))';
    await this.run(
      `WITH counted AS (INSERT INTO access_count_progress (id, through_seq) VALUES (1, $4)) ${heads}
       INSERT INTO vault (id, key_check, created_at, high_water_time) VALUES (1, $1, $2, $3)`,
      [
        keyCheck,
        createdAt,
        highWaterTime,
        highestSeq,
        ...(head === null ? [] : [head.seq, head.hmac, head.mac, head.epoch]),
      ],
    );
  }
}

function quoted(columns: Table['columns']): string {
  return Object.keys(columns)
    .map((column) => `"${column}"`)
    .join(', ');
}

/** Bytes as base64. */
function toJson({ columns }: Table, rows: readonly Row[]): string {
  const ofBytes = Object.keys(columns).filter((column) => columns[column] === 'bytes');
  if (ofBytes.length === 0) return JSON.stringify(rows);
  const asText = (value: unknown): unknown =>
    value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
  return JSON.stringify(
    rows.map((row) => ({ ...row, ...Object.fromEntries(ofBytes.map((column) => [column, asText(row[column])])) })),
  );
}

/** Rejects integers that lose precision as JavaScript numbers; only an outside alteration stores them. */
function assertExact({ name }: Table, row: Row): void {
  for (const value of Object.values(row)) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw new StoreError('unavailable', `a number in ${name} is out of range: it was altered outside`);
    }
  }
}
