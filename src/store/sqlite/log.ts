/** Reading the audit log. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { AuditEntry } from '../../core/audit.ts';
import type { CredentialId } from '../../core/names.ts';
import type { AuditFilter, Head, LastEntry } from '../port.ts';
import { ENTRIES_IN_RANGE, toEntry } from './rows.ts';

export class Log {
  readonly #head: StatementSync;
  readonly #last: StatementSync;
  readonly #highest: StatementSync;
  readonly #entries: StatementSync;
  readonly #matching: StatementSync;
  readonly #from: StatementSync;
  readonly #uncounted: StatementSync;

  constructor(database: DatabaseSync) {
    this.#head = database.prepare('SELECT seq, hmac, mac, epoch FROM audit_head');
    this.#last = database.prepare('SELECT seq, hmac, timestamp FROM audit_entries ORDER BY seq DESC LIMIT 1');
    this.#highest = database.prepare(
      `SELECT max(coalesce((SELECT max(seq) FROM audit_entries), 0), coalesce((SELECT max(seq) FROM leases), 0),
         coalesce((SELECT max(seq) FROM revocation_marks), 0)) AS seq`,
    );
    this.#entries = database.prepare(ENTRIES_IN_RANGE);
    this.#entries.setReturnArrays(true);
    this.#matching = database.prepare(
      `SELECT seq FROM audit_entries WHERE seq BETWEEN :fromSeq AND :toSeq
         AND (:agentName IS NULL OR agent_name = :agentName)
         AND (:action IS NULL OR action = :action)
         AND (:eventType IS NULL OR event_type = :eventType)
         AND (:result IS NULL OR result = :result)
         AND (:resource IS NULL OR glob_matches(:resource, resource))
       ORDER BY seq`,
    );
    this.#from = database.prepare('SELECT seq, timestamp FROM audit_entries WHERE seq >= ? ORDER BY seq LIMIT 1');
    this.#uncounted = database.prepare(
      `SELECT c.id AS id, count(*) AS n FROM audit_entries e JOIN credentials c ON c.path = e.resource
       WHERE e.seq > (SELECT counted_through_seq FROM audit_head)
         AND e.event_type = 'credential.retrieve' AND e.result = 'allowed'
       GROUP BY c.id`,
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

  matching(filter: AuditFilter, fromSeq: number, toSeq: number): number[] {
    const { agentName, resource, action, eventType, result } = filter;
    const values = { agentName, resource, action, eventType, result, fromSeq, toSeq };
    return this.#matching.all(values).map((row) => Number(row['seq']));
  }

  /** Bisection: times never fall along the log. */
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

  uncounted(): Map<CredentialId, number> {
    return new Map(this.#uncounted.all().map((row) => [String(row['id']) as CredentialId, Number(row['n'])]));
  }
}
