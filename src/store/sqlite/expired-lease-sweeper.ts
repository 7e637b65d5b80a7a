/**
 * Removing leases that ended long ago, without an index by their end, which every retrieval would pay for. Leases lie in the order
 * in which they were issued; spans of the log are looked through one by one, and for each that has some left it is remembered
 * when the first of them may go. A new process looks through everything once. What is revoked or shortened after its span was
 * looked through stays for as long as it would have lasted: lists and looks leave it out by its end.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { ENDED_LEASE_RETENTION_MS } from '../../core/lease.ts';

/** Ordinals in a span: some hundred microseconds to look through. */
const SPAN_SEQS = 1024;
const BATCH_ROWS = 256;

const END = 'min(expires_at, coalesce(revoked_at, expires_at))';

const REMOVE = `DELETE FROM leases WHERE seq IN (
  SELECT seq FROM effective_leases WHERE seq >= :low AND seq < :high AND issued_at <= :endedBy AND ${END} <= :endedBy LIMIT :limit)`;

interface WaitingSpan {
  readonly span: number;
  readonly dueAt: number;
}

export class ExpiredLeaseSweeper {
  readonly #remove: StatementSync;
  readonly #next: StatementSync;
  readonly #left: StatementSync;
  /** The one that is due last comes first. */
  #waiting: WaitingSpan[] = [];
  /** The first span that was not looked at yet. */
  #scannedThrough = 0;

  constructor(database: DatabaseSync) {
    this.#remove = database.prepare(REMOVE);
    this.#next = database.prepare('SELECT seq, issued_at FROM leases WHERE seq >= ? ORDER BY seq LIMIT 1');
    this.#left = database.prepare(
      `SELECT min(${END}) AS first_end, (SELECT max(seq) FROM leases) < :high AS is_open
       FROM effective_leases WHERE seq >= :low AND seq < :high`,
    );
  }

  /** One batch, of at most `limit`. Resolves to how many went; null where none is due. */
  sweep(now: number, limit: number): number | null {
    const span = this.#takeDue(now);
    if (span === null) return null;
    const [low, high] = [span * SPAN_SEQS, (span + 1) * SPAN_SEQS];
    const most = Math.min(limit, BATCH_ROWS);
    const removed = Number(
      this.#remove.run({ low, high, endedBy: now - ENDED_LEASE_RETENTION_MS, limit: most }).changes,
    );
    if (removed === most) this.#wait({ span, dueAt: now });
    else this.#waitForRest(span, now, low, high);
    return removed;
  }

  /** To be called when what was removed came back, because its transaction failed. */
  reset(): void {
    this.#waiting = [];
    this.#scannedThrough = 0;
  }

  #takeDue(now: number): number | null {
    const first = this.#waiting.at(-1);
    if (first !== undefined && first.dueAt <= now) {
      this.#waiting.pop();
      return first.span;
    }
    const lease = this.#next.get(this.#scannedThrough * SPAN_SEQS);
    // What was issued lately ended lately, and so did all that were issued later.
    if (lease === undefined || Number(lease['issued_at']) > now - ENDED_LEASE_RETENTION_MS) return null;
    const span = Math.floor(Number(lease['seq']) / SPAN_SEQS);
    this.#scannedThrough = span + 1;
    return span;
  }

  #waitForRest(span: number, now: number, low: number, high: number): void {
    const { first_end: firstEnd, is_open: isOpen } = this.#left.get({ low, high }) ?? {};
    const ends = [
      ...(typeof firstEnd === 'number' ? [firstEnd] : []),
      // More may come into the log's last span; it ends later than now.
      ...(isOpen === 0 ? [] : [now]),
    ];
    if (ends.length > 0) this.#wait({ span, dueAt: Math.min(...ends) + ENDED_LEASE_RETENTION_MS });
  }

  #wait(waiting: WaitingSpan): void {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.dueAt ?? 0) >= waiting.dueAt) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, waiting);
  }
}
