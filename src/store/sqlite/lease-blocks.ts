/**
 * The blocks of sequence numbers in which an agent name has leases, so that a query by name need not scan all leases.
 * WHY not an index on the name: with many agents nearly every retrieval would write one more page, which doubles its
 * cost.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type LeaseChunk, numberIn } from '../dialect.ts';
import { type Procedure, sql } from '../statement.ts';
import type { Removal } from '../sweep.ts';

/** Sequence numbers in a block: a few milliseconds to scan, in chunks. */
export const BLOCK_SEQS = 4096;

const blockOf = (seq: number): number => Math.floor(seq / BLOCK_SEQS);

/** The newest leases before a sequence number; with a name, those of the last block in which it has leases. */
export function* findLeaseChunk(
  agentName: string | null,
  before: number,
  chunkRows: number,
): Procedure<LeaseChunk | null> {
  let [low, high] = [0, before];
  if (agentName !== null) {
    const [row] = yield sql`SELECT span FROM lease_spans
      WHERE agent_name = ${agentName} AND span <= ${blockOf(before - 1)} ORDER BY span DESC LIMIT 1`;
    if (row === undefined) return null;
    const block = numberIn(row, 'span');
    [low, high] = [block * BLOCK_SEQS, Math.min(before, (block + 1) * BLOCK_SEQS)];
  }
  const [chunk] = yield sql`SELECT min(seq) AS first, count(*) AS n FROM
    (SELECT seq FROM leases WHERE seq >= ${low} AND seq < ${high} ORDER BY seq DESC LIMIT ${chunkRows}) AS chunk`;
  const first = chunk?.['first'];
  const nextBlock = agentName === null ? null : low;
  if (typeof first !== 'number') return nextBlock === null ? null : { from: high, before: high, next: nextBlock };
  return { from: first, before: high, next: numberIn(chunk, 'n') === chunkRows ? first : nextBlock };
}

/** Used within the transaction that writes leases. */
export class LeaseBlockWriter {
  readonly #insert: StatementSync;
  /** The names that are stored for the current block. */
  readonly #names = new Set<string>();
  #block = -1;

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare('INSERT OR IGNORE INTO lease_spans VALUES (?, ?)');
  }

  add(agentName: string, seq: number): void {
    const block = blockOf(seq);
    if (block !== this.#block) {
      this.#names.clear();
      this.#block = block;
    }
    if (this.#names.has(agentName)) return;
    this.#insert.run(agentName, block);
    this.#names.add(agentName);
  }

  /** Call after a rollback. */
  reset(): void {
    this.#names.clear();
  }
}

/** Deleted blocks between two passes; a pass reads every row. */
const BLOCKS_BETWEEN_PASSES = 16;
const CHUNK_ROWS = 32;

/** Deletes the rows of blocks before the first lease, some at a time. */
export class LeaseBlockSweeper {
  #firstBlock = 0;
  /** Null between passes. */
  #cursor: { readonly agentName: string; readonly span: number } | null = null;

  /** Reads up to `limit` rows; null at the end of a pass. */
  readonly remove: Removal = (_now, limit) => this.#remove(Math.min(limit, CHUNK_ROWS));

  *#remove(limit: number): Procedure<number | null> {
    if (this.#cursor === null && !(yield* this.#begin())) return null;
    const { agentName, span } = this.#cursor ?? { agentName: '', span: -1 };
    const rows = yield sql`SELECT agent_name, span FROM lease_spans
      WHERE (agent_name, span) > (${agentName}, ${span}) ORDER BY agent_name, span LIMIT ${limit}`;
    let removed = 0;
    for (const row of rows) {
      if (numberIn(row, 'span') >= this.#firstBlock) continue;
      yield sql`DELETE FROM lease_spans WHERE agent_name = ${String(row['agent_name'])} AND span = ${numberIn(row, 'span')}`;
      removed += 1;
    }
    const last = rows.at(-1);
    const isEnd = last === undefined || rows.length < limit;
    this.#cursor = isEnd ? null : { agentName: String(last['agent_name']), span: numberIn(last, 'span') };
    return isEnd ? null : removed;
  }

  /** Call after a rollback. */
  reset(): void {
    this.#cursor = null;
    this.#firstBlock = 0;
  }

  *#begin(): Procedure<boolean> {
    const [first] = yield sql`SELECT seq FROM leases WHERE seq > 0 ORDER BY seq LIMIT 1`;
    if (first === undefined) return false;
    const block = blockOf(numberIn(first, 'seq'));
    if (block < this.#firstBlock + BLOCKS_BETWEEN_PASSES) return false;
    this.#firstBlock = block;
    return true;
  }
}
