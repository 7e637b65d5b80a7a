/**
 * Removing what ended long ago, in steps that are bounded in rows and in time. Every removal finds its rows by an
 * index.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { BULK_REVOCATION_TTL_MS, ENDED_SESSION_RETENTION_MS, type SweepResult } from '../store.ts';
import { inTransaction } from './database.ts';
import { ExpiredLeaseSweeper } from './expired-lease-sweeper.ts';
import { LeaseBlockSweeper } from './lease-blocks.ts';

/** Without the commit, which takes about as long again. */
const STEP_MS = 2;
/**
 * Rows removed between two looks at the clock. Sessions, challenges and ids of kept replies lie at random, each on a
 * page of its own.
 */
const BATCH_ROWS = 32;

/** Parameters: the time before which rows ended, and the limit. */
const REMOVALS = {
  sessions: 'DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at < ? LIMIT ?)',
  challenges: 'DELETE FROM spent_challenges WHERE id IN (SELECT id FROM spent_challenges WHERE expires_at < ? LIMIT ?)',
  replies:
    'DELETE FROM idempotency_records WHERE rowid IN (SELECT rowid FROM idempotency_records WHERE expires_at < ? LIMIT ?)',
  // `revoked_at` never decreases along `seq`: if the oldest rows are not due, none is.
  marks: `DELETE FROM bulk_revocations WHERE revoked_at < ?
    AND seq IN (SELECT seq FROM bulk_revocations WHERE seq > 0 ORDER BY seq LIMIT ?)`,
};

export class Sweeper {
  readonly #database: DatabaseSync;
  readonly #seen: StatementSync;
  readonly #sessions: StatementSync;
  readonly #challenges: StatementSync;
  readonly #replies: StatementSync;
  readonly #marks: StatementSync;
  readonly #leases: ExpiredLeaseSweeper;
  readonly #leaseBlocks: LeaseBlockSweeper;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#seen = database.prepare('UPDATE vault SET high_water_time = max(high_water_time, ?)');
    this.#sessions = database.prepare(REMOVALS.sessions);
    this.#challenges = database.prepare(REMOVALS.challenges);
    this.#replies = database.prepare(REMOVALS.replies);
    this.#marks = database.prepare(REMOVALS.marks);
    this.#leases = new ExpiredLeaseSweeper(database);
    this.#leaseBlocks = new LeaseBlockSweeper(database);
  }

  sweep(now: number, limit: number): SweepResult {
    try {
      // One transaction: a deletion is committed only with the time that justified it.
      return inTransaction(this.#database, () => {
        this.#seen.run(now);
        return this.#remove(now, limit);
      });
    } catch (error) {
      this.#leases.reset();
      this.#leaseBlocks.reset();
      throw error;
    }
  }

  #remove(now: number, limit: number): SweepResult {
    const endsAt = performance.now() + STEP_MS;
    let removed = 0;
    /** A batch at a time, each answering how many went, until it is null: nothing of the kind is due any more. */
    const sweepKind = (batch: (most: number) => number | null): boolean => {
      while (removed < limit && performance.now() < endsAt) {
        const gone = batch(limit - removed);
        if (gone === null) return true;
        removed += gone;
      }
      return false;
    };
    const before =
      (removal: StatementSync, time: number) =>
      (most: number): number | null =>
        Number(removal.run(time, Math.min(most, BATCH_ROWS)).changes) || null;
    const isDone =
      sweepKind(before(this.#sessions, now - ENDED_SESSION_RETENTION_MS)) &&
      sweepKind(before(this.#challenges, now)) &&
      sweepKind(before(this.#replies, now)) &&
      sweepKind(before(this.#marks, now - BULK_REVOCATION_TTL_MS)) &&
      sweepKind((most) => this.#leases.sweep(now, most)) &&
      sweepKind((most) => this.#leaseBlocks.sweep(Math.min(most, BATCH_ROWS)));
    return { removed, isDone };
  }
}
