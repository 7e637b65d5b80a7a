/**
 * Deletes expired leases block by block, because an index on expires_at would slow down every retrieval. Leases are in
 * the order in which they were issued. For each scanned block with leases left, the time when the next one is due is
 * kept in memory. A new process scans all blocks once. A lease that is revoked or shortened after its block was scanned
 * stays until its original expiry; queries exclude it.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { ENDED_LEASE_RETENTION_MS } from '../../core/lease.ts';

/** Sequence numbers in a block: a few hundred microseconds to scan. */
const BLOCK_SEQS = 1024;
const BATCH_ROWS = 256;

const END = 'min(expires_at, coalesce(revoked_at, expires_at))';

const REMOVE = `DELETE FROM leases WHERE seq IN (
  SELECT seq FROM effective_leases WHERE seq >= :low AND seq < :high AND issued_at <= :endedBy AND ${END} <= :endedBy LIMIT :limit)`;

interface WaitingBlock {
  readonly block: number;
  readonly dueAt: number;
}

export class ExpiredLeaseSweeper {
  readonly #remove: StatementSync;
  readonly #next: StatementSync;
  readonly #left: StatementSync;
  /** Latest due time first. */
  #waiting: WaitingBlock[] = [];
  /** The first block that was not scanned. */
  #scannedThrough = 0;

  constructor(database: DatabaseSync) {
    this.#remove = database.prepare(REMOVE);
    this.#next = database.prepare('SELECT seq, issued_at FROM leases WHERE seq >= ? ORDER BY seq LIMIT 1');
    this.#left = database.prepare(
      `SELECT min(${END}) AS first_end, (SELECT max(seq) FROM leases) < :high AS is_open
       FROM effective_leases WHERE seq >= :low AND seq < :high`,
    );
  }

  /** Deletes up to `limit` leases of one block. Returns the number of rows; null if none is due. */
  sweep(now: number, limit: number): number | null {
    const block = this.#takeDue(now);
    if (block === null) return null;
    const [low, high] = [block * BLOCK_SEQS, (block + 1) * BLOCK_SEQS];
    const most = Math.min(limit, BATCH_ROWS);
    const removed = Number(
      this.#remove.run({ low, high, endedBy: now - ENDED_LEASE_RETENTION_MS, limit: most }).changes,
    );
    if (removed === most) this.#wait({ block, dueAt: now });
    else this.#waitForRest(block, now, low, high);
    return removed;
  }

  /** Call after a rollback. */
  reset(): void {
    this.#waiting = [];
    this.#scannedThrough = 0;
  }

  #takeDue(now: number): number | null {
    const first = this.#waiting.at(-1);
    if (first !== undefined && first.dueAt <= now) {
      this.#waiting.pop();
      return first.block;
    }
    const lease = this.#next.get(this.#scannedThrough * BLOCK_SEQS);
    // A lease that was issued recently, and every later one, cannot be due.
    if (lease === undefined || Number(lease['issued_at']) > now - ENDED_LEASE_RETENTION_MS) return null;
    const block = Math.floor(Number(lease['seq']) / BLOCK_SEQS);
    this.#scannedThrough = block + 1;
    return block;
  }

  #waitForRest(block: number, now: number, low: number, high: number): void {
    const { first_end: firstEnd, is_open: isOpen } = this.#left.get({ low, high }) ?? {};
    const ends = [
      ...(typeof firstEnd === 'number' ? [firstEnd] : []),
      // The last block may receive more leases, which end after now.
      ...(isOpen === 0 ? [] : [now]),
    ];
    if (ends.length > 0) this.#wait({ block, dueAt: Math.min(...ends) + ENDED_LEASE_RETENTION_MS });
  }

  #wait(waiting: WaitingBlock): void {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.dueAt ?? 0) >= waiting.dueAt) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, waiting);
  }
}
