/**
 * Where the leases of a name lie: the spans of ordinals in which it has any, so that its leases are found without looking through
 * everybody's. WHY not an index of leases by name: with many agents nearly every retrieval would touch a page of its own agent's,
 * which costs as much as the rest of its rows.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** Ordinals in a span: some milliseconds to look through, in windows. */
export const SPAN_SEQS = 4096;

export const spanOf = (seq: number): number => Math.floor(seq / SPAN_SEQS);

/** For the transaction that writes leases. */
export class LeaseSpanWriter {
  readonly #insert: StatementSync;
  /** The names that are written for the span that was written to last. */
  readonly #names = new Set<string>();
  #span = -1;

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare('INSERT OR IGNORE INTO lease_spans VALUES (?, ?)');
  }

  add(agentName: string, seq: number): void {
    const span = spanOf(seq);
    if (span !== this.#span) {
      this.#names.clear();
      this.#span = span;
    }
    if (this.#names.has(agentName)) return;
    this.#insert.run(agentName, span);
    this.#names.add(agentName);
  }

  /** To be called when what was written came to nothing. */
  forget(): void {
    this.#names.clear();
  }
}

/** Spans that are passed before the table is gone through once more: a pass looks at every row. */
const SPANS_BETWEEN_PASSES = 16;

/** Removes the spans that lie before all leases, some rows at a time. */
export class LeaseSpanSweeper {
  readonly #firstLease: StatementSync;
  readonly #next: StatementSync;
  readonly #remove: StatementSync;
  #firstSpan = 0;
  /** Null between two passes. */
  #place: { readonly agentName: string; readonly span: number } | null = null;

  constructor(database: DatabaseSync) {
    this.#firstLease = database.prepare('SELECT seq FROM leases WHERE seq > 0 ORDER BY seq LIMIT 1');
    this.#next = database.prepare(
      'SELECT agent_name, span FROM lease_spans WHERE (agent_name, span) > (?, ?) ORDER BY agent_name, span LIMIT ?',
    );
    this.#remove = database.prepare('DELETE FROM lease_spans WHERE agent_name = ? AND span = ?');
  }

  /** Looks at `limit` rows at most. How many went; null where nothing is left to look at. */
  sweep(limit: number): number | null {
    if (this.#place === null && !this.#begins()) return null;
    const { agentName, span } = this.#place ?? { agentName: '', span: -1 };
    const rows = this.#next.all(agentName, span, limit);
    let removed = 0;
    for (const row of rows) {
      if (Number(row['span']) >= this.#firstSpan) continue;
      this.#remove.run(String(row['agent_name']), Number(row['span']));
      removed += 1;
    }
    const last = rows.at(-1);
    this.#place =
      last === undefined || rows.length < limit
        ? null
        : { agentName: String(last['agent_name']), span: Number(last['span']) };
    return this.#place === null ? null : removed;
  }

  /** To be called when what was removed came back. */
  beginAnew(): void {
    this.#place = null;
    this.#firstSpan = 0;
  }

  #begins(): boolean {
    const first = this.#firstLease.get();
    if (first === undefined) return false;
    const span = spanOf(Number(first['seq']));
    if (span < this.#firstSpan + SPANS_BETWEEN_PASSES) return false;
    this.#firstSpan = span;
    return true;
  }
}
