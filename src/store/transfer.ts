/**
 * Copies a vault from one store to another, row by row: the port, and the synchronization of one table.
 *
 * INVARIANT: a target becomes a vault with its metadata, which is written last; until then every service rejects it.
 * Each run compares the target with the source and fixes the differences, so that a migration can resume after any
 * interruption.
 */
import type { Row } from './decode-rows.ts';
import { StoreError } from './errors.ts';
import type { Head } from './store.ts';
import { isSameRow, keyOf, LOG, minKey, type RowKey, type Table } from './transfer-schema.ts';

/** The `vault` and `audit_head` rows. */
export interface VaultMetadata {
  readonly keyCheck: string;
  readonly createdAt: number;
  readonly highWaterTime: number;
  /** Null if the row was deleted. */
  readonly head: Head | null;
}

/** Known before the first row is written. */
export interface TransferMetadata {
  readonly records: VaultMetadata;
  /** The highest sequence number of an entry, a lease or a bulk revocation; the counts include retrievals up to it. */
  readonly highestSeq: number;
}

export interface TableReader {
  /** Null if the vault does not exist or is incomplete. */
  readRecords(): Promise<VaultMetadata | null>;
  count(table: Table): Promise<number>;
  /** In key order: rows after `after`, up to and including `through` unless null; at most `limit`. */
  read(table: Table, after: RowKey, through: RowKey | null, limit: number): Promise<Row[]>;
  close(): void;
}

export interface TableWriter extends TableReader {
  /** Each call is atomic. */
  remove(table: Table, keys: readonly RowKey[]): Promise<void>;
  add(table: Table, rows: readonly Row[]): Promise<void>;
  /** Writes the metadata in one transaction, which makes the target a vault; durable when it resolves. */
  commitMetadata(): Promise<void>;
}

export interface TransferContext {
  readonly source: TableReader;
  readonly target: TableWriter;
  /** Checked between two steps. */
  readonly signal: AbortSignal;
  /** That many more rows are equal in both. */
  readonly onProgress: (table: Table, rows: number) => void;
}

/** Makes the target's table equal to the source's. @throws StoreError, the signal's reason */
export async function syncTable({ source, target, signal, onProgress }: TransferContext, table: Table): Promise<void> {
  let after = minKey(table);
  for (;;) {
    signal.throwIfAborted();
    const rows = await source.read(table, after, null, table.chunkRows);
    const last = rows.at(-1);
    const through = last === undefined || rows.length < table.chunkRows ? null : keyOf(table, last);
    await reconcileRows(target, table, rows, after, through);
    onProgress(table, rows.length);
    if (through === null) return;
    after = through;
  }
}

async function reconcileRows(
  target: TableWriter,
  table: Table,
  rows: readonly Row[],
  after: RowKey,
  through: RowKey | null,
): Promise<void> {
  const missing = new Map(rows.map((row) => [textOf(table, row), row]));
  for (let cursor: RowKey | null = after; cursor !== null; ) {
    const present = await target.read(table, cursor, through, table.chunkRows);
    const foreign: RowKey[] = [];
    for (const row of present) {
      const text = textOf(table, row);
      const wanted = missing.get(text);
      if (wanted !== undefined && isSameRow(table, wanted, row)) missing.delete(text);
      else foreign.push(keyOf(table, row));
    }
    if (foreign.length > 0) await removeForeign(target, table, foreign);
    const last = present.at(-1);
    cursor = last === undefined || present.length < table.chunkRows ? null : keyOf(table, last);
  }
  if (missing.size > 0) await target.add(table, [...missing.values()]);
}

/**
 * Removes rows that the source changed or deleted since an earlier run. A log never changes: there they belong to
 * another vault.
 */
async function removeForeign(target: TableWriter, table: Table, keys: readonly RowKey[]): Promise<void> {
  if (table === LOG) {
    throw new StoreError(
      'unavailable',
      'the target holds rows of another vault, or of one that was altered: empty it first',
    );
  }
  await target.remove(table, keys);
}

function textOf(table: Table, row: Row): string {
  return keyOf(table, row).join('\0');
}
