/**
 * Copies a vault into an empty store, all or nothing: the rows of every table, then the `vault` and `audit_head` rows.
 * An interrupted copy leaves nothing.
 */
import { toHead } from './audit-log.ts';
import { numberIn } from './dialect.ts';
import { StoreError } from './errors.ts';
import { type Procedure, type Row, raw, sql } from './statement.ts';
import type { Head } from './store.ts';
import { type Table, toValue } from './table.ts';

/** The `vault` and `audit_head` rows. */
export interface VaultMetadata {
  readonly keyCheck: string;
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
  close(): void;
}

/** An empty store to which no other process writes. Without `commit` it stays empty. */
export interface TransferTarget {
  /** @throws StoreError */
  insert(table: Table<object>, rows: readonly Row[]): Promise<void>;
  count(table: Table<object>): Promise<number>;
  /** Writes the `vault` and `audit_head` rows, which make it a vault; durable when it resolves. */
  commit(): Promise<void>;
  close(): void;
}

/** Maximum number of rows in memory; values and recorded responses have up to 256 KiB each. */
const CHUNK_ROWS = 200;

/** Null if the vault does not exist. */
export function* readMetadata(highestSeq: number): Procedure<VaultMetadata | null> {
  const [vault] = yield sql`SELECT key_check, created_at, high_water_time FROM vault`;
  if (vault === undefined) return null;
  const [head] = yield sql`SELECT seq, hmac, mac, epoch FROM audit_head`;
  return {
    keyCheck: String(vault['key_check']),
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

/** Copies every row; `onProgress` gets the number of rows so far. @throws StoreError, the signal's reason */
export async function copyTable(
  source: TransferSource,
  target: TransferTarget,
  table: Table<object>,
  signal: AbortSignal,
  onProgress: (rows: number) => void,
): Promise<void> {
  let copied = 0;
  let last: Row | undefined;
  do {
    signal.throwIfAborted();
    const rows = await source.run(readRows(table, source.views, last));
    if (rows.length > 0) await target.insert(table, rows);
    copied += rows.length;
    onProgress(copied);
    last = rows.length < CHUNK_ROWS ? undefined : rows.at(-1);
  } while (last !== undefined);
}

/** In key order, after a row. */
function* readRows(
  { name, key, columns, list }: Table<object>,
  views: TransferSource['views'],
  after: Row | undefined,
): Procedure<readonly Row[]> {
  const names = raw(key.join(', '));
  const [first, ...others] = key.map((column) => sql`${toValue(after?.[column])}`);
  const values = others.reduce((all, value) => sql`${all}, ${value}`, first ?? raw(''));
  const where = after === undefined ? raw('true') : sql`(${names}) > (${values})`;
  const rows =
    yield sql`SELECT ${list} FROM ${raw(views[name] ?? name)} WHERE ${where} ORDER BY ${names} LIMIT ${CHUNK_ROWS}`;
  for (const row of rows) {
    // Only an outside alteration stores integers that lose precision as JavaScript numbers.
    if (
      columns.every(
        (column) => column.type !== 'number' || row[column.name] === null || Number.isSafeInteger(row[column.name]),
      )
    )
      continue;
    throw new StoreError('unavailable', `a number in ${name} is out of range: it was altered outside`);
  }
  return rows;
}
