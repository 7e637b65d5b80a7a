/** Removing what ended long ago, a bounded step at a time. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { ENDED_LEASES_LISTED_MS } from '../../core/lease.ts';
import { MAX_TTL_SECONDS } from '../../core/policy.ts';
import { inTransaction } from './database.ts';

/** Ended sessions are told apart from unknown ones for a day. */
const ENDED_SESSIONS_KNOWN_MS = 24 * 3600 * 1000;

export class Sweeper {
  readonly #database: DatabaseSync;
  readonly #seen: StatementSync;
  readonly #sessions: StatementSync;
  readonly #challenges: StatementSync;
  readonly #window: StatementSync;
  readonly #leases: StatementSync;
  readonly #marks: StatementSync;
  /** How far the leases were looked through; from the start again after the end. */
  #lookedThroughSeq = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#seen = database.prepare('UPDATE vault SET seen_at = max(seen_at, ?)');
    this.#sessions = database.prepare(
      'DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE expires_at < ? LIMIT ?)',
    );
    this.#challenges = database.prepare(
      'DELETE FROM spent_challenges WHERE id IN (SELECT id FROM spent_challenges WHERE expires_at < ? LIMIT ?)',
    );
    this.#window = database.prepare(
      'SELECT max(seq) AS last FROM (SELECT seq FROM leases WHERE seq > ? ORDER BY seq LIMIT ?)',
    );
    this.#leases = database.prepare(
      `DELETE FROM leases WHERE seq IN (
         SELECT seq FROM leases_now WHERE seq > ? AND seq <= ? AND min(expires_at, coalesce(revoked_at, expires_at)) < ?)`,
    );
    this.#marks = database.prepare(
      'DELETE FROM revocation_marks WHERE seq IN (SELECT seq FROM revocation_marks WHERE revoked_at < ? LIMIT ?)',
    );
  }

  sweep(now: number, limit: number): number {
    // One transaction: what is gone was over at a time that is kept.
    return inTransaction(this.#database, () => {
      this.#seen.run(now);
      return this.#remove(now, limit);
    });
  }

  #remove(now: number, limit: number): number {
    let removed = Number(this.#sessions.run(now - ENDED_SESSIONS_KNOWN_MS, limit).changes);
    removed += Number(this.#challenges.run(now, limit).changes);
    removed += this.#sweepLeases(now, limit);
    // A mark must outlive every lease that it can cover.
    const longest = MAX_TTL_SECONDS * 1000 + ENDED_LEASES_LISTED_MS;
    removed += Number(this.#marks.run(now - longest, limit).changes);
    return removed;
  }

  #sweepLeases(now: number, limit: number): number {
    const last = this.#window.get(this.#lookedThroughSeq, limit)?.['last'];
    if (typeof last !== 'number') {
      this.#lookedThroughSeq = 0;
      return 0;
    }
    const { changes } = this.#leases.run(this.#lookedThroughSeq, last, now - ENDED_LEASES_LISTED_MS);
    this.#lookedThroughSeq = last;
    return Number(changes);
  }
}
