/**
 * Deletes rows that ended long ago, in one transaction with the time that justifies it. Expired leases are deleted
 * block by block, because an index on expires_at would slow down every retrieval. Leases are in the order in which they
 * were issued. For each scanned block with leases left, the time when the next one is due is kept in memory. A new
 * process scans all blocks once. A lease that is revoked or shortened after its block was scanned stays until its
 * original expiry; queries exclude it.
 */
import type { DatabaseSync } from 'node:sqlite';
import { ENDED_LEASE_RETENTION_MS } from '../../vault/leases/lease.ts';
import { foldExposures } from '../exposures.ts';
import { type Procedure, raw, sql } from '../statement.ts';
import type { SweepResult } from '../stored-data.ts';
import { type Removal, sweepRows } from '../sweep.ts';
import { inTransaction } from './database.ts';
import { removeFromBlock } from './lease-blocks.ts';
import { Statements } from './statements.ts';

/** Excludes the commit, which takes about as long again. */
const STEP_MS = 2;
/** Rows of sessions and challenges are at random positions, each on a separate page. */
const CHUNK_ROWS = 32;
const CHUNK_LEASES = 256;
/** Leases that one step folds into the exposures: 2 ms if each is of another credential. */
const CHUNK_FOLDED = 512;
/** Sequence numbers in a block: a few hundred microseconds to scan. */
const BLOCK_SEQS = 1024;
/** A revocation after the expiry does not apply. */
const END = raw('min(expires_at, coalesce(revoked_at, expires_at))');

export class Sweeper {
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  /** When the next lease of a block is due, by block. */
  readonly #dueAt = new Map<number, number>();
  /** The first block that this process has not scanned yet. */
  #scannedThrough = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = new Statements(database);
  }

  sweep(now: number, limit: number): SweepResult {
    try {
      return inTransaction(this.#database, () => this.#statements.run(this.#sweep(now, limit)));
    } catch (error) {
      this.#dueAt.clear();
      this.#scannedThrough = 0;
      throw error;
    }
  }

  *#sweep(now: number, limit: number): Procedure<SweepResult> {
    yield sql`UPDATE vault SET high_water_time = max(high_water_time, ${now})`;
    const bounds = { limit, chunkRows: CHUNK_ROWS, timeMs: STEP_MS };
    const removeLeases: Removal = (at, most) => this.#removeLeases(at, Math.min(most, CHUNK_LEASES));
    // ORDER: a lease is deleted only after it has become part of the stored exposures.
    const isFolded = yield* foldExposures(now, CHUNK_FOLDED);
    const swept = yield* sweepRows(now, bounds, isFolded ? [removeLeases] : []);
    return { ...swept, isDone: swept.isDone && isFolded };
  }

  /** Deletes up to `limit` leases of one block. */
  *#removeLeases(now: number, limit: number): Procedure<number | null> {
    const block = yield* this.#takeDue(now);
    if (block === null) return null;
    const [low, high] = [block * BLOCK_SEQS, (block + 1) * BLOCK_SEQS];
    const endedBy = now - ENDED_LEASE_RETENTION_MS;
    const removed = yield sql`DELETE FROM leases WHERE seq IN (SELECT seq FROM effective_leases
      WHERE seq >= ${low} AND seq < ${high} AND issued_at <= ${endedBy} AND ${END} <= ${endedBy} LIMIT ${limit})
      RETURNING agent_name`;
    const agentNames = new Set(removed.map((row) => String(row['agent_name'])));
    if (agentNames.size > 0) yield* removeFromBlock([...agentNames], low);
    if (removed.length === limit) this.#dueAt.set(block, now);
    else yield* this.#waitForRest(block, now, low, high);
    return removed.length;
  }

  *#takeDue(now: number): Procedure<number | null> {
    for (const [block, dueAt] of this.#dueAt) {
      if (dueAt > now) continue;
      this.#dueAt.delete(block);
      return block;
    }
    const [lease] = yield sql`SELECT seq, issued_at FROM leases
      WHERE seq >= ${this.#scannedThrough * BLOCK_SEQS} ORDER BY seq LIMIT 1`;
    // A lease that was issued recently, and every later one, cannot be due.
    if (lease === undefined || Number(lease['issued_at']) > now - ENDED_LEASE_RETENTION_MS) return null;
    const block = Math.floor(Number(lease['seq']) / BLOCK_SEQS);
    this.#scannedThrough = block + 1;
    return block;
  }

  *#waitForRest(block: number, now: number, low: number, high: number): Procedure<void> {
    const [row] = yield sql`SELECT min(${END}) AS first_end, (SELECT max(seq) FROM leases) < ${high} AS is_open
      FROM effective_leases WHERE seq >= ${low} AND seq < ${high}`;
    const ends = [
      ...(typeof row?.['first_end'] === 'number' ? [row['first_end']] : []),
      // The last block may receive more leases, which end after now.
      ...(row?.['is_open'] === 0 ? [] : [now]),
    ];
    if (ends.length > 0) this.#dueAt.set(block, Math.min(...ends) + ENDED_LEASE_RETENTION_MS);
  }
}
