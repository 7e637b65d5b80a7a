/**
 * Reads the rows of a vault for a backup, and writes those of a backup into an empty store, all or nothing: the rows of
 * every table, then the `vault` and `audit_head` rows.
 */
import { toHead } from './audit-log.ts';
import { numberIn } from './dialect.ts';
import { StoreError } from './errors.ts';
import { type Procedure, type Row, raw, sql } from './statement.ts';
import type { Head } from './stored-data.ts';
import { type Table, toValue } from './table.ts';

/** The `vault` and `audit_head` rows. */
export interface VaultMetadata {
  readonly keyCheck: string;
  readonly vaultId: string;
  readonly createdAt: number;
  readonly highWaterTime: number;
  /** Null if the row was deleted. */
  readonly head: Head | null;
  /** The highest sequence number of an entry, a lease or a bulk revocation; access counts include that entry. */
  readonly highestSeq: number;
}

export interface TransferSource {
  /** SQL for the rows of a table, by its name, if this store keeps them differently. */
  readonly views: Readonly<Record<string, string>>;
  /** Reads one snapshot. @throws StoreError */
  run<T>(procedure: Procedure<T>): Promise<T>;
  /** Every row, in key order, in chunks that fit into memory. @throws StoreError */
  scan(table: Table<object>): AsyncGenerator<readonly Row[]>;
  close(): void;
}

/** An empty store to which no other process writes. Without `commit` it stays empty. */
export interface TransferTarget {
  insert(table: Table<object>, rows: readonly Row[]): Promise<void>;
  count(table: Table<object>): Promise<number>;
  /** Writes the `vault` and `audit_head` rows; durable when it resolves. */
  commit(): Promise<void>;
  close(): void;
}

/** Maximum number of rows in memory; values and recorded responses have up to 256 KiB each. */
export const CHUNK_ROWS = 200;

/** Null if the vault does not exist. */
export function* readMetadata(highestSeq: number): Procedure<VaultMetadata | null> {
  const [vault] = yield sql`SELECT key_check, vault_id, created_at, high_water_time FROM vault`;
  if (vault === undefined) return null;
  const [head] = yield sql`SELECT seq, hmac, mac, epoch, tree, control FROM audit_head`;
  return {
    keyCheck: String(vault['key_check']),
    vaultId: String(vault['vault_id']),
    createdAt: Number(vault['created_at']),
    highWaterTime: Number(vault['high_water_time']),
    head: toHead(head),
    highestSeq,
  };
}

export function* countRows({ name }: Table<object>, views: TransferSource['views'] = {}): Procedure<number> {
  const [row] = yield sql`SELECT count(*) AS n FROM ${raw(views[name] ?? name)}`;
  return numberIn(row, 'n');
}

/** Scans a store in which a range of a view is found by its key. @throws StoreError */
export async function* scanByKey(source: TransferSource, table: Table<object>): AsyncGenerator<readonly Row[]> {
  let last: Row | undefined;
  do {
    const rows = await source.run(readRows(table, source.views, last));
    if (rows.length > 0) yield rows;
    last = rows.length < CHUNK_ROWS ? undefined : rows.at(-1);
  } while (last !== undefined);
}

/** The rows after a row, in key order. */
function* readRows(
  table: Table<object>,
  views: TransferSource['views'],
  after: Row | undefined,
): Procedure<readonly Row[]> {
  const { key } = table;
  const names = raw(key.join(', '));
  const [first, ...others] = key.map((column) => sql`${toValue(after?.[column])}`);
  const values = others.reduce((all, value) => sql`${all}, ${value}`, first ?? raw(''));
  const where = after === undefined ? raw('true') : sql`(${names}) > (${values})`;
  const rows = yield sql`${selectRows(table, views, where)} LIMIT ${CHUNK_ROWS}`;
  assertNumbers(table, rows);
  return rows;
}

export function selectRows({ name, key, list }: Table<object>, views: TransferSource['views'], where = raw('true')) {
  return sql`SELECT ${list} FROM ${raw(views[name] ?? name)} WHERE ${where} ORDER BY ${raw(key.join(', '))}`;
}

/** Only an outside alteration stores integers that lose precision as JavaScript numbers. @throws StoreError */
export function assertNumbers({ name, columns }: Table<object>, rows: readonly Row[]): void {
  const numbers = columns.filter(({ type }) => type === 'number').map((column) => column.name);
  const isExact = (row: Row): boolean =>
    numbers.every((column) => row[column] === null || Number.isSafeInteger(row[column]));
  if (rows.every(isExact)) return;
  throw new StoreError('unavailable', `a number in ${name} is out of range: it was altered outside`);
}
