/**
 * Carrying a vault from one store into another, row by row: the port, with one carrier a dialect, and the way of a table through it.
 *
 * INVARIANT: a target is a vault only when its records are written, which is the last step; until then every service refuses it.
 * Whatever was written by then is compared with the source, row by row, and what is not the same is made so: that is how a move
 * goes on after any interruption, and why nothing is ever there twice.
 */

import type { Row } from './decode-rows.ts';
import { type Head, StoreError } from './store.ts';
import { beforeAll, isSameRow, type Key, keyOf, LOG, type Table } from './transfer-schema.ts';

/** What makes rows a vault. */
export interface Records {
  readonly keyCheck: string;
  readonly createdAt: number;
  readonly seenAt: number;
  /** Null where it was removed. */
  readonly head: Head | null;
}

/** What is carried, known before the first row is written. */
export interface Cargo {
  readonly records: Records;
  /** The highest ordinal that an entry, a lease or a mark has: accesses are counted up to it. */
  readonly highestSeq: number;
}

export interface Carrier {
  /** Null where there is no vault, or not all of one. */
  readRecords(): Promise<Records | null>;
  count(table: Table): Promise<number>;
  /** In the order of their keys: those behind `after`, up to and with `through` where that is given; at most `limit`. */
  read(table: Table, after: Key, through: Key | null, limit: number): Promise<Row[]>;
  close(): void;
}

export interface TargetCarrier extends Carrier {
  /** Each call is done wholly or not at all. */
  remove(table: Table, keys: readonly Key[]): Promise<void>;
  add(table: Table, rows: readonly Row[]): Promise<void>;
  /** Writes the records of its cargo, in one transaction, and with that makes it a vault; on disk when it resolves. */
  finish(): Promise<void>;
}

export interface Carrying {
  readonly source: Carrier;
  readonly target: TargetCarrier;
  /** Looked at between two steps. */
  readonly signal: AbortSignal;
  /** So many rows more are the same in both. */
  readonly tell: (table: Table, rows: number) => void;
}

/** Makes the target's table the same as the source's. @throws StoreFailure, the signal's reason */
export async function carryTable({ source, target, signal, tell }: Carrying, table: Table): Promise<void> {
  let after = beforeAll(table);
  for (;;) {
    signal.throwIfAborted();
    const rows = await source.read(table, after, null, table.rowsAtATime);
    const last = rows.at(-1);
    const through = last === undefined || rows.length < table.rowsAtATime ? null : keyOf(table, last);
    await makeSame(target, table, rows, after, through);
    tell(table, rows.length);
    if (through === null) return;
    after = through;
  }
}

async function makeSame(
  target: TargetCarrier,
  table: Table,
  rows: readonly Row[],
  after: Key,
  through: Key | null,
): Promise<void> {
  const missing = new Map(rows.map((row) => [textOf(table, row), row]));
  for (let place: Key | null = after; place !== null; ) {
    const there = await target.read(table, place, through, table.rowsAtATime);
    const foreign: Key[] = [];
    for (const row of there) {
      const text = textOf(table, row);
      const wanted = missing.get(text);
      if (wanted !== undefined && isSameRow(table, wanted, row)) missing.delete(text);
      else foreign.push(keyOf(table, row));
    }
    if (foreign.length > 0) await removeForeign(target, table, foreign);
    const last = there.at(-1);
    place = last === undefined || there.length < table.rowsAtATime ? null : keyOf(table, last);
  }
  if (missing.size > 0) await target.add(table, [...missing.values()]);
}

/** Rows that the source has changed or removed since an earlier try. Of a log nothing changes: then it is another vault's. */
async function removeForeign(target: TargetCarrier, table: Table, keys: readonly Key[]): Promise<void> {
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
