/**
 * Carrying a vault from one store into another, row by row: the port, with one carrier a dialect, and the way of a table through it.
 *
 * INVARIANT: a target is a vault only when its records are written, which is the last step; until then every service refuses it.
 * Whatever was written by then is compared with the source, row by row, and what is not the same is made so: that is how a move
 * goes on after any interruption, and why nothing is ever there twice.
 */

import type { Row } from './decode-rows.ts';
import { type Head, StoreError } from './store.ts';
import { isSameRow, keyOf, LOG, minKey, type RowKey, type Table } from './transfer-schema.ts';

/** What makes rows a vault. */
export interface VaultMetadata {
  readonly keyCheck: string;
  readonly createdAt: number;
  readonly highWaterTime: number;
  /** Null where it was removed. */
  readonly head: Head | null;
}

/** What is carried, known before the first row is written. */
export interface TransferMetadata {
  readonly records: VaultMetadata;
  /** The highest ordinal that an entry, a lease or a mark has: accesses are counted up to it. */
  readonly highestSeq: number;
}

export interface TableReader {
  /** Null where there is no vault, or not all of one. */
  readRecords(): Promise<VaultMetadata | null>;
  count(table: Table): Promise<number>;
  /** In the order of their keys: those behind `after`, up to and with `through` where that is given; at most `limit`. */
  read(table: Table, after: RowKey, through: RowKey | null, limit: number): Promise<Row[]>;
  close(): void;
}

export interface TableWriter extends TableReader {
  /** Each call is done wholly or not at all. */
  remove(table: Table, keys: readonly RowKey[]): Promise<void>;
  add(table: Table, rows: readonly Row[]): Promise<void>;
  /** Writes the records of its cargo, in one transaction, and with that makes it a vault; on disk when it resolves. */
  commitMetadata(): Promise<void>;
}

export interface TransferContext {
  readonly source: TableReader;
  readonly target: TableWriter;
  /** Looked at between two steps. */
  readonly signal: AbortSignal;
  /** So many rows more are the same in both. */
  readonly onProgress: (table: Table, rows: number) => void;
}

/** Makes the target's table the same as the source's. @throws StoreFailure, the signal's reason */
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
  for (let place: RowKey | null = after; place !== null; ) {
    const there = await target.read(table, place, through, table.chunkRows);
    const foreign: RowKey[] = [];
    for (const row of there) {
      const text = textOf(table, row);
      const wanted = missing.get(text);
      if (wanted !== undefined && isSameRow(table, wanted, row)) missing.delete(text);
      else foreign.push(keyOf(table, row));
    }
    if (foreign.length > 0) await removeForeign(target, table, foreign);
    const last = there.at(-1);
    place = last === undefined || there.length < table.chunkRows ? null : keyOf(table, last);
  }
  if (missing.size > 0) await target.add(table, [...missing.values()]);
}

/** Rows that the source has changed or removed since an earlier try. Of a log nothing changes: then it is another vault's. */
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
