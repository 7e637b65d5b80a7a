/**
 * Access counts per credential. A retrieval adds to a count in memory: writing each count with its batch would take a
 * quarter more processor time in the store, and twice the write-ahead log. Above a threshold a flush pass writes the
 * counts, some rows with each commit, in row order. Each row stores the last entry that its count includes, and
 * `audit_head` the entry up to which all retrievals are included: startup counts later retrievals from the audit log.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export type CountRowId = number;

/** A flush pass begins at this number of credentials in memory: of a million, about 20 then share a page. */
const FLUSH_THRESHOLD_CREDENTIALS = 32_768;
/** A flush pass also begins at this number of entries, which startup counts in a fraction of a second. */
const FLUSH_THRESHOLD_ENTRIES = 100_000;
/** About 0.3 ms. */
const ROWS_PER_COMMIT = 256;

/** Parameters that tests shorten. */
export interface CountingOptions {
  readonly flushThreshold?: number;
  readonly rowsPerCommit?: number;
}

/** Counts that are being written: retrievals up to an entry. */
interface FlushPass {
  readonly throughSeq: number;
  /** Ascending, so that each page is written once. */
  readonly countIds: Float64Array;
  readonly added: Map<CountRowId, number>;
  next: number;
}

export class AccessCounts {
  readonly #flushThreshold: number;
  readonly #rowsPerCommit: number;
  readonly #insert: StatementSync;
  readonly #add: StatementSync;
  readonly #remove: StatementSync;
  readonly #count: StatementSync;
  /** Retrievals that no pass includes. */
  #pending = new Map<CountRowId, number>();
  #pass: FlushPass | null = null;
  /** The rows include all retrievals up to this entry. */
  #throughSeq: number;

  constructor(
    database: DatabaseSync,
    { flushThreshold = FLUSH_THRESHOLD_CREDENTIALS, rowsPerCommit = ROWS_PER_COMMIT }: CountingOptions = {},
  ) {
    this.#flushThreshold = flushThreshold;
    this.#rowsPerCommit = rowsPerCommit;
    this.#insert = database.prepare('INSERT INTO access_counts (count, through_seq) VALUES (?, ?)');
    // Clamped to safe integers: an altered count must not break other counts.
    this.#add = database.prepare(
      `UPDATE access_counts SET count = min(max(count, 0), ${Number.MAX_SAFE_INTEGER} - :count) + :count, through_seq = :throughSeq
       WHERE count_id = :countId`,
    );
    this.#remove = database.prepare('DELETE FROM access_counts WHERE count_id = ?');
    this.#count = database.prepare(
      `SELECT min(max(count, 0), ${Number.MAX_SAFE_INTEGER}) AS count FROM access_counts WHERE count_id = ?`,
    );
    // A missing head record means tampering; do not read the whole log for it.
    const begin = database.prepare(
      `SELECT min(max(coalesce((SELECT counted_through_seq FROM audit_head), last), 0), last) AS through
       FROM (SELECT coalesce(max(seq), 0) AS last FROM audit_entries)`,
    );
    this.#throughSeq = Number(begin.get()?.['through']);
    // A deleted credential has no row; a later one with the same path counts from its own entry on. CROSS JOIN keeps
    // the order: the audit log comes first.
    const uncounted = database.prepare(
      `SELECT min(max(a.count_id, 0), ${Number.MAX_SAFE_INTEGER}) AS id FROM audit_entries e
       CROSS JOIN credentials c ON c.path = e.resource CROSS JOIN access_counts a ON a.count_id = c.count_id
       WHERE e.seq > ? AND e.seq > a.through_seq AND event_type = 'credential.retrieve' AND result = 'allowed'`,
    );
    for (const { id } of uncounted.iterate(this.#throughSeq)) this.#addPending(Number(id), 1);
  }

  get(id: CountRowId): number {
    const written = Number(this.#count.get(id)?.['count'] ?? 0);
    const unwritten = (this.#pass?.added.get(id) ?? 0) + (this.#pending.get(id) ?? 0);
    return Math.min(written + unwritten, Number.MAX_SAFE_INTEGER);
  }

  /** Writes the counts of the audit log, which startup has in memory. Only before the first commit. */
  writeAll(): void {
    for (const [countId, count] of this.#pending) this.#add.run({ count, throughSeq: this.#throughSeq, countId });
  }

  /** Within a commit: inserts the row of a new credential, with its retrievals up to and including that entry. */
  insert(count: number, throughSeq: number): CountRowId {
    return Number(this.#insert.run(count, throughSeq).lastInsertRowid);
  }

  remove(id: CountRowId): void {
    this.#remove.run(id);
  }

  /** Within a commit: writes a step of the pass. Returns the entry up to which the rows then include all retrievals. */
  step(): number {
    const pass = this.#pass;
    if (pass === null) return this.#throughSeq;
    const { countIds, added, next, throughSeq } = pass;
    for (const countId of countIds.subarray(next, next + this.#rowsPerCommit)) {
      // Does nothing for a deleted credential.
      this.#add.run({ count: added.get(countId) ?? 0, throughSeq, countId });
    }
    return next + this.#rowsPerCommit >= countIds.length ? throughSeq : this.#throughSeq;
  }

  /** Called after successful commits only. Advances the pass, and adds retrievals of credentials that have a row. */
  committed(added: Iterable<readonly [CountRowId, number]>, headSeq: number): void {
    this.#stepped();
    for (const [id, count] of added) this.#addPending(id, count);
    const isDue = this.#pending.size >= this.#flushThreshold || headSeq - this.#throughSeq >= FLUSH_THRESHOLD_ENTRIES;
    if (this.#pass !== null || !isDue) return;
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
    for (const countId of pass.countIds.subarray(pass.next, pass.next + this.#rowsPerCommit))
      pass.added.delete(countId);
    pass.next += this.#rowsPerCommit;
    if (pass.next < pass.countIds.length) return;
    this.#throughSeq = pass.throughSeq;
    this.#pass = null;
  }
}
