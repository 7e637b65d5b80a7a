/**
 * The blocks of sequence numbers in which an agent name has leases, so that a query by name need not scan all leases.
 * WHY not an index on the name: with many agents nearly every retrieval would write one more page, which doubles its
 * cost.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Sequence numbers in a block: a few milliseconds to scan, in windows. */
export const BLOCK_SEQS = 4096;

export const blockOf = (seq: number): number => Math.floor(seq / BLOCK_SEQS);

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

/** Deletes the rows of blocks before the first lease, some at a time. */
export class LeaseBlockSweeper {
  readonly #firstLease: StatementSync;
  readonly #next: StatementSync;
  readonly #remove: StatementSync;
  #firstBlock = 0;
  /** Null between passes. */
  #cursor: { readonly agentName: string; readonly span: number } | null = null;

  constructor(database: DatabaseSync) {
    this.#firstLease = database.prepare('SELECT seq FROM leases WHERE seq > 0 ORDER BY seq LIMIT 1');
    this.#next = database.prepare(
      'SELECT agent_name, span FROM lease_spans WHERE (agent_name, span) > (?, ?) ORDER BY agent_name, span LIMIT ?',
    );
    this.#remove = database.prepare('DELETE FROM lease_spans WHERE agent_name = ? AND span = ?');
  }

  /** Reads up to `limit` rows. Returns the number of deleted rows; null at the end of a pass. */
  sweep(limit: number): number | null {
    if (this.#cursor === null && !this.#begins()) return null;
    const { agentName, span } = this.#cursor ?? { agentName: '', span: -1 };
    const rows = this.#next.all(agentName, span, limit);
    let removed = 0;
    for (const row of rows) {
      if (Number(row['span']) >= this.#firstBlock) continue;
      this.#remove.run(String(row['agent_name']), Number(row['span']));
      removed += 1;
    }
    const last = rows.at(-1);
    this.#cursor =
      last === undefined || rows.length < limit
        ? null
        : { agentName: String(last['agent_name']), span: Number(last['span']) };
    return this.#cursor === null ? null : removed;
  }

  /** Call after a rollback. */
  reset(): void {
    this.#cursor = null;
    this.#firstBlock = 0;
  }

  #begins(): boolean {
    const first = this.#firstLease.get();
    if (first === undefined) return false;
    const block = blockOf(Number(first['seq']));
    if (block < this.#firstBlock + BLOCKS_BETWEEN_PASSES) return false;
    this.#firstBlock = block;
    return true;
  }
}
