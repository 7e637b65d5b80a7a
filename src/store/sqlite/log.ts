/** Reads the audit log. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import type { AuditFilter, Matches } from '../queries.ts';
import type { Head, LastEntry } from '../store.ts';
import { ENTRIES_IN_RANGE, toEntry } from './rows.ts';
import { scanUntilDeadline } from './time-slice.ts';

/** Fewer than for other rows: a malicious glob takes half a millisecond per entry. */
const WINDOW_ENTRIES = 32;

export class Log {
  readonly #head: StatementSync;
  readonly #last: StatementSync;
  readonly #highest: StatementSync;
  readonly #entries: StatementSync;
  readonly #beforeFirst: StatementSync;
  readonly #matching: StatementSync;
  readonly #from: StatementSync;
  readonly #windowEnd: StatementSync;
  readonly #windowEndBelow: StatementSync;

  constructor(database: DatabaseSync) {
    this.#head = database.prepare('SELECT seq, hmac, mac, epoch FROM audit_head');
    this.#last = database.prepare('SELECT seq, hmac, timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1');
    this.#highest = database.prepare(
      `SELECT max(coalesce((SELECT max(seq) FROM audit_entries), 0), coalesce((SELECT max(seq) FROM leases), 0),
         coalesce((SELECT max(seq) FROM bulk_revocations), 0)) AS seq`,
    );
    this.#entries = database.prepare(ENTRIES_IN_RANGE);
    this.#entries.setReturnArrays(true);
    this.#beforeFirst = database.prepare('SELECT 1 FROM audit_entries WHERE seq < 1 LIMIT 1');
    this.#matching = database.prepare(
      `SELECT seq FROM audit_entries WHERE seq BETWEEN :low AND :high
         AND (:agentName IS NULL OR agent_name = :agentName)
         AND (:action IS NULL OR action = :action)
         AND (:eventType IS NULL OR event_type = :eventType)
         AND (:result IS NULL OR result = :result)
         AND (:resource IS NULL OR glob_matches(:resource, resource))
       ORDER BY seq`,
    );
    this.#from = database.prepare('SELECT seq, timestamp FROM audit_entries WHERE seq >= ? ORDER BY seq LIMIT 1');
    this.#windowEnd = database.prepare(
      'SELECT seq FROM audit_entries WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT 1 OFFSET ? - 1',
    );
    this.#windowEndBelow = database.prepare(
      'SELECT seq FROM audit_entries WHERE seq <= ? AND seq >= ? ORDER BY seq DESC LIMIT 1 OFFSET ? - 1',
    );
  }

  head(): { head: Head | null; last: LastEntry | null; highestSeq: number } {
    const head = this.#head.get();
    const last = this.#last.get();
    return {
      head:
        head === undefined
          ? null
          : {
              seq: Number(head['seq']),
              hmac: String(head['hmac']),
              mac: String(head['mac']),
              epoch: Number(head['epoch']),
            },
      last:
        last === undefined
          ? null
          : { seq: Number(last['seq']), hmac: String(last['hmac']), timestamp: String(last['timestamp']) },
      highestSeq: Number(this.#highest.get()?.['seq'] ?? 0),
    };
  }

  entries(fromSeq: number, toSeq: number, limit: number): AuditEntry[] {
    return this.#entries.all(fromSeq, toSeq, limit).map(toEntry);
  }

  hasEntryBeforeFirst(): boolean {
    return this.#beforeFirst.get() !== undefined;
  }

  matching(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Matches {
    const { agentName, resource, action, eventType, result } = filter;
    const values = { agentName, resource, action, eventType, result };
    const isRising = order === 'asc';
    const seqs: number[] = [];
    const next = scanUntilDeadline(
      isRising ? fromSeq : toSeq,
      (at) => {
        const end = isRising
          ? this.#windowEnd.get(at, toSeq, WINDOW_ENTRIES)
          : this.#windowEndBelow.get(at, fromSeq, WINDOW_ENTRIES);
        const last = end === undefined ? null : Number(end['seq']);
        const window = isRising ? { low: at, high: last ?? toSeq } : { low: last ?? fromSeq, high: at };
        const found = this.#matching.all({ ...values, ...window }).map((row) => Number(row['seq']));
        for (const seq of isRising ? found : found.reverse()) seqs.push(seq);
        return last === null ? null : last + (isRising ? 1 : -1);
      },
      () => false,
    );
    return { seqs, next };
  }

  /** Bisection: timestamps never decrease along the log. */
  findSeqAt(timestamp: string): number | null {
    let low = 1;
    let high = Number(this.#last.get()?.['seq'] ?? 0) + 1;
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      const row = this.#from.get(middle);
      if (row === undefined || String(row['timestamp']) >= timestamp) high = middle;
      else low = Number(row['seq']) + 1;
    }
    const found = this.#from.get(low);
    return found === undefined ? null : Number(found['seq']);
  }
}
