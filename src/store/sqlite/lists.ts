/** The lists of credentials and leases, page by page. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Credential } from '../../core/credential.ts';
import { ENDED_LEASES_LISTED_MS, type Lease, type LeaseStatus } from '../../core/lease.ts';
import type { CredentialQuery, LeaseQuery } from '../port.ts';
import { toCredential, toLease } from './rows.ts';

const IN_RANGE = 'path >= :from AND path < :to AND path > :after AND (:type IS NULL OR type = :type)';

const STATUS_RULES: Readonly<Record<LeaseStatus, string>> = {
  active: 'revoked_at IS NULL AND expires_at > :now',
  expired: 'revoked_at IS NULL AND expires_at <= :now',
  revoked: 'revoked_at IS NOT NULL',
};

export class Lists {
  readonly #database: DatabaseSync;
  readonly #credentials: StatementSync;
  readonly #credentialCount: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#credentials = database.prepare(
      `SELECT * FROM credentials WHERE ${IN_RANGE} ORDER BY path LIMIT :limit OFFSET :offset`,
    );
    this.#credentialCount = database.prepare(`SELECT count(*) AS n FROM credentials WHERE ${IN_RANGE}`);
  }

  credentials(query: CredentialQuery, after: string, offset: number, limit: number): Credential[] {
    const found: Credential[] = [];
    let toSkip = offset;
    for (const { from, to } of query.ranges) {
      if (to <= after) continue;
      const wanted = limit - found.length;
      if (wanted <= 0) break;
      const range = { from, to, after, type: query.type };
      const rows = this.#credentials.all({ ...range, limit: wanted, offset: toSkip });
      // What a range holds is only counted where all of it was skipped.
      if (rows.length === 0 && toSkip > 0) toSkip -= Math.min(toSkip, this.#count(range));
      else toSkip = 0;
      found.push(...rows.map(toCredential));
    }
    return found;
  }

  countCredentials(query: CredentialQuery): number {
    return query.ranges.reduce((sum, { from, to }) => sum + this.#count({ from, to, after: '', type: query.type }), 0);
  }

  leases(query: LeaseQuery, beforeSeq: number, offset: number, limit: number): Lease[] {
    const { where, values } = this.#leaseFilter(query);
    return this.#database
      .prepare(
        `SELECT * FROM leases_now WHERE seq < :beforeSeq AND ${where} ORDER BY seq DESC LIMIT :limit OFFSET :offset`,
      )
      .all({ ...values, beforeSeq, limit, offset })
      .map(toLease);
  }

  countLeases(query: LeaseQuery): number {
    const { where, values } = this.#leaseFilter(query);
    return Number(
      this.#database.prepare(`SELECT count(*) AS n FROM leases_now WHERE ${where}`).get(values)?.['n'] ?? 0,
    );
  }

  #count(range: { from: string; to: string; after: string; type: string | null }): number {
    return Number(this.#credentialCount.get(range)?.['n'] ?? 0);
  }

  /** Only the filters that are asked for, so that the planner sees which index serves. */
  #leaseFilter(query: LeaseQuery): { where: string; values: Record<string, string | number> } {
    const rules = ['min(expires_at, coalesce(revoked_at, expires_at)) > :listedAfter'];
    const values: Record<string, string | number> = { listedAfter: query.now - ENDED_LEASES_LISTED_MS };
    const equal = { agent_id: query.agentId, agent_name: query.agentName, path: query.path };
    for (const [column, value] of Object.entries(equal)) {
      if (value === null) continue;
      rules.push(`${column} = :${column}`);
      values[column] = value;
    }
    if (query.status !== null) {
      rules.push(STATUS_RULES[query.status]);
      if (query.status !== 'revoked') values['now'] = query.now;
    }
    return { where: rules.join(' AND '), values };
  }
}
