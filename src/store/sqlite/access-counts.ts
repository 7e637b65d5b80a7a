/**
 * How often each credential was retrieved. A retrieval adds to a count in memory; when there are many, a pass writes them, some
 * with each commit, in the order in which they lie. Each row says up to which entry of the log its accesses are in it, and the
 * head's row up to which entry all of them are: what one process had in memory only, the next one counts from the log.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { StoreError } from '../store.ts';
import { uncountedAccesses } from './recover-counts.ts';

/** The number of a credential's row in `access_counts`. */
export type CountRowId = number;

/** Counts in memory are worth a pass when they are of so many credentials: of a million, 20 then lie on a page … */
const WORTH_CREDENTIALS = 32_768;
/** … or from so many entries, so that a start has little to count. */
const WORTH_ENTRIES = 100_000;
/** Some 0.3 ms. */
const ROWS_A_COMMIT = 256;

/** For tests. */
export interface CountingOptions {
  readonly worthCredentials?: number;
  readonly rowsACommit?: number;
}

/** Counts on their way into the database: of accesses up to an entry. */
interface FlushPass {
  readonly throughSeq: number;
  /** Rising, so that each page is touched once. */
  readonly countIds: Float64Array;
  readonly added: Map<CountRowId, number>;
  next: number;
}

export class AccessCounts {
  readonly #database: DatabaseSync;
  readonly #worthCredentials: number;
  readonly #rowsACommit: number;
  readonly #insert: StatementSync;
  readonly #add: StatementSync;
  readonly #remove: StatementSync;
  readonly #count: StatementSync;
  /** Accesses that no pass has taken. */
  #pending = new Map<CountRowId, number>();
  #pass: FlushPass | null = null;
  /** All accesses up to this entry are in the rows. */
  #throughSeq: number;
  /** The last entry of the process before. */
  readonly #lastSeqBefore: number;
  #isRecovered = false;
  #recovery: Promise<void> | null = null;
  #isClosed = false;

  constructor(
    database: DatabaseSync,
    { worthCredentials = WORTH_CREDENTIALS, rowsACommit = ROWS_A_COMMIT }: CountingOptions = {},
  ) {
    this.#database = database;
    this.#worthCredentials = worthCredentials;
    this.#rowsACommit = rowsACommit;
    this.#insert = database.prepare('INSERT INTO access_counts (count, through_seq) VALUES (?, ?)');
    // Within what a number can hold, whatever somebody wrote there: a count that was altered costs nobody else anything.
    this.#add = database.prepare(
      `UPDATE access_counts SET count = min(max(count, 0), ${Number.MAX_SAFE_INTEGER} - :count) + :count, through_seq = :throughSeq
       WHERE count_id = :countId`,
    );
    this.#remove = database.prepare('DELETE FROM access_counts WHERE count_id = ?');
    this.#count = database.prepare(
      `SELECT min(max(count, 0), ${Number.MAX_SAFE_INTEGER}) AS count FROM access_counts WHERE count_id = ?`,
    );
    // Without a head record the log was tampered with; not all of it is read again for that.
    const begin = database.prepare(
      `SELECT last, min(max(coalesce((SELECT counted_through_seq FROM audit_head), last), 0), last) AS through
       FROM (SELECT coalesce(max(seq), 0) AS last FROM audit_entries)`,
    );
    const { last, through } = begin.get() ?? {};
    this.#lastSeqBefore = Number(last);
    this.#throughSeq = Number(through);
    // Whoever needs a count waits for it, and hears of a failure.
    this.recovered().catch(() => undefined);
  }

  /** Resolves when what is in the log and in no row is counted, beside the turns that go on. Then `of` is exact. */
  recovered(): Promise<void> {
    this.#recovery ??= this.#recover().catch((error: unknown) => {
      this.#recovery = null;
      throw error;
    });
    return this.#recovery;
  }

  async #recover(): Promise<void> {
    const steps = uncountedAccesses(this.#database, this.#throughSeq, this.#lastSeqBefore);
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        const since = this.#pending;
        this.#pending = step.value;
        for (const [id, count] of since) this.#addPending(id, count);
        this.#isRecovered = true;
        return;
      }
      await setImmediate();
      if (this.#isClosed) throw new StoreError('unavailable', 'the store was closed');
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  get(id: CountRowId): number {
    const written = Number(this.#count.get(id)?.['count'] ?? 0);
    const unwritten = (this.#pass?.added.get(id) ?? 0) + (this.#pending.get(id) ?? 0);
    return Math.min(written + unwritten, Number.MAX_SAFE_INTEGER);
  }

  /** Within a commit: makes the row of a new credential, with its accesses up to and with that entry. */
  insert(count: number, throughSeq: number): CountRowId {
    return Number(this.#insert.run(count, throughSeq).lastInsertRowid);
  }

  remove(id: CountRowId): void {
    this.#remove.run(id);
  }

  /** Within a commit: takes the pass a step on. Returns the entry up to which all accesses are in the rows then. */
  step(): number {
    const pass = this.#pass;
    if (pass === null) return this.#throughSeq;
    const { countIds, added, next, throughSeq } = pass;
    for (const countId of countIds.subarray(next, next + this.#rowsACommit)) {
      // One that was removed has no row any more.
      this.#add.run({ count: added.get(countId) ?? 0, throughSeq, countId });
    }
    return next + this.#rowsACommit >= countIds.length ? throughSeq : this.#throughSeq;
  }

  /** After a commit, and only then: takes over its step, and the accesses of credentials that had a row before. */
  committed(added: Iterable<readonly [CountRowId, number]>, headSeq: number): void {
    this.#stepped();
    for (const [id, count] of added) this.#addPending(id, count);
    const isWorthIt = this.#pending.size >= this.#worthCredentials || headSeq - this.#throughSeq >= WORTH_ENTRIES;
    if (this.#pass !== null || !this.#isRecovered || !isWorthIt) return;
    const countIds = Float64Array.from(this.#pending.keys()).sort();
    this.#pass = { throughSeq: headSeq, countIds, added: this.#pending, next: 0 };
    this.#pending = new Map();
  }

  #addPending(id: CountRowId, count: number): void {
    this.#pending.set(id, (this.#pending.get(id) ?? 0) + count);
  }

  #stepped(): void {
    const pass = this.#pass;
    if (pass === null) return;
    for (const countId of pass.countIds.subarray(pass.next, pass.next + this.#rowsACommit)) pass.added.delete(countId);
    pass.next += this.#rowsACommit;
    if (pass.next < pass.countIds.length) return;
    this.#throughSeq = pass.throughSeq;
    this.#pass = null;
  }
}
