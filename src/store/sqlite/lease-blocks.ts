/**
 * The blocks of sequence numbers in which an agent name has leases, so that a query by name need not scan all leases.
 * WHY not an index on the name: with many agents nearly every retrieval would write one more page, which doubles its
 * cost.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type LeaseChunk, numberIn } from '../dialect.ts';
import { type Procedure, sql } from '../statement.ts';

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

  /** Call after a rollback, and before leases are deleted. */
  reset(): void {
    this.#names.clear();
  }
}

/** Deletes the rows of names that have no more leases in the block; call it with the names of deleted leases. */
export function* removeFromBlock(agentNames: readonly string[], seq: number): Procedure<void> {
  const block = blockOf(seq);
  yield sql`DELETE FROM lease_spans WHERE span = ${block}
    AND agent_name IN (SELECT value FROM json_each(${JSON.stringify(agentNames)}))
    AND agent_name NOT IN (SELECT agent_name FROM leases
      WHERE seq >= ${block * BLOCK_SEQS} AND seq < ${(block + 1) * BLOCK_SEQS})`;
}
