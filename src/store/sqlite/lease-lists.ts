/** Lists and counts leases, newest first, in steps that each read a bounded number of leases. */
import type { DatabaseSync } from 'node:sqlite';
import { ENDED_LEASE_RETENTION_MS, type Lease, type LeaseStatus } from '../../core/lease.ts';
import { toLease } from '../decode-rows.ts';
import type { CountStep, LeaseQuery, ListStep, RevokedLeases } from '../queries.ts';
import { BLOCK_SEQS, blockOf } from './lease-blocks.ts';
import { Statements } from './statements.ts';
import { scanUntilDeadline, WINDOW_ROWS } from './time-slice.ts';

type Values = Readonly<Record<string, string | number>>;

/**
 * A lease is listed while it lasts and 7 days longer. What was issued lately needs no look at its end, nor at marks.
 */
const LISTED = '(issued_at > :listedAfter OR min(expires_at, coalesce(revoked_at, expires_at)) > :listedAfter)';

const STATUS_RULES: Readonly<Record<LeaseStatus, string>> = {
  active: 'expires_at > :now AND revoked_at IS NULL',
  expired: `expires_at <= :now AND ${LISTED} AND revoked_at IS NULL`,
  revoked: `${LISTED} AND revoked_at IS NOT NULL`,
};

/** Conditions on a lease `l` that a bulk revocation ended: it was active, and no earlier revocation applied. */
const ENDED_BY_MARK = `l.revoked_at IS NULL AND l.expires_at > :revokedAt
  AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
    WHERE m.agent_id = l.agent_id AND m.credential_id = '' AND m.seq > l.seq AND m.seq < :markSeq)
  AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
    WHERE m.agent_id = l.agent_id AND m.credential_id = l.credential_id AND m.seq > l.seq AND m.seq < :markSeq)
  AND NOT EXISTS (SELECT 1 FROM bulk_revocations m
    WHERE m.agent_id = '' AND m.credential_id = l.credential_id AND m.seq > l.seq AND m.seq < :markSeq)`;

interface Filter {
  readonly where: string;
  readonly values: Values;
}

export class LeaseLists {
  readonly #statements: Statements;

  constructor(database: DatabaseSync) {
    this.#statements = new Statements(database);
  }

  leases(query: LeaseQuery, beforeSeq: number, limit: number): ListStep<Lease, number> {
    const { where, values } = toFilter(query);
    const rowsOf = this.#statements.prepare(
      `SELECT * FROM effective_leases l WHERE ${where} ORDER BY seq DESC LIMIT :limit`,
    );
    const rows: Lease[] = [];
    const next = scanUntilDeadline(
      beforeSeq,
      (before) =>
        this.#look(query.agentName, before, (window) => {
          const wanted = limit - rows.length;
          const some = rowsOf.all({ ...values, ...window, limit: wanted }).map(toLease);
          rows.push(...some);
          return some.length < wanted ? null : (some.at(-1)?.seq ?? before);
        }),
      () => rows.length >= limit,
    );
    return { rows, next };
  }

  countLeases(query: LeaseQuery, beforeSeq: number, atMost: number): CountStep<number> {
    return this.#count(toFilter(query), query.agentName, 'effective_leases', beforeSeq, atMost);
  }

  countRevokedBy({ mark, agentName }: RevokedLeases, beforeSeq: number): CountStep<number> {
    const { seq, agentId, credentialId, revokedAt } = mark;
    const columns = { agent_name: agentName, agent_id: agentId, credential_id: credentialId };
    const filter = allOf(columns, ENDED_BY_MARK, { revokedAt, markSeq: seq });
    return this.#count(filter, agentName, 'leases', Math.min(beforeSeq, seq), Number.POSITIVE_INFINITY);
  }

  #count(
    { where, values }: Filter,
    agentName: string | null,
    from: 'leases' | 'effective_leases',
    beforeSeq: number,
    atMost: number,
  ): CountStep<number> {
    const countOf = this.#statements.prepare(`SELECT count(*) AS n FROM ${from} l WHERE ${where}`);
    let count = 0;
    const next = scanUntilDeadline(
      beforeSeq,
      (before) =>
        this.#look(agentName, before, (window) => {
          const left = atMost - count;
          const found = Number(countOf.get({ ...values, ...window })?.['n'] ?? 0);
          count += Math.min(found, left);
          if (found < left) return null;
          const nth = this.#statements.prepare(
            `SELECT seq FROM ${from} l WHERE ${where} ORDER BY seq DESC LIMIT 1 OFFSET :nth`,
          );
          return Number(nth.get({ ...values, ...window, nth: left - 1 })?.['seq']);
        }),
      () => count >= atMost,
    );
    return { count, next };
  }

  /**
   * Has the next window looked at. `look` answers the ordinal before which it goes on, where that is not the window's
   * last.
   */
  #look(
    agentName: string | null,
    before: number,
    look: (window: { before: number; last: number }) => number | null,
  ): number | null {
    const span = agentName === null ? null : this.#blockBefore(agentName, before);
    if (span === undefined) return null;
    const [low, high] = span === null ? [0, before] : [span * BLOCK_SEQS, Math.min(before, (span + 1) * BLOCK_SEQS)];
    const { last, n } =
      this.#statements
        .prepare(
          `SELECT min(seq) AS last, count(*) AS n FROM
           (SELECT seq FROM leases WHERE seq >= :low AND seq < :high ORDER BY seq DESC LIMIT ${WINDOW_ROWS})`,
        )
        .get({ low, high }) ?? {};
    const next = span === null ? null : low;
    if (typeof last !== 'number') return next;
    return look({ before: high, last }) ?? (n === WINDOW_ROWS ? last : next);
  }

  /** The last span with leases of the name and ordinals before that one; undefined where there is none. */
  #blockBefore(agentName: string, before: number): number | undefined {
    const spans = this.#statements.prepare(
      'SELECT span FROM lease_spans WHERE agent_name = ? AND span <= ? ORDER BY span DESC LIMIT 1',
    );
    const span = spans.get(agentName, blockOf(before - 1))?.['span'];
    return typeof span === 'number' ? span : undefined;
  }
}

/** Within a window; of the columns those are held to a value that have one. */
function allOf(columns: Readonly<Record<string, string | null>>, rule: string, ofRule: Values): Filter {
  const asked = Object.entries(columns).filter((each): each is [string, string] => each[1] !== null);
  const equal = asked.map(([column]) => `l.${column} = :${column}`);
  const where = ['l.seq >= :last AND l.seq < :before', ...equal, rule].join(' AND ');
  return { where, values: { ...Object.fromEntries(asked), ...ofRule } };
}

function toFilter({ agentId, agentName, path, status, now }: LeaseQuery): Filter {
  const rule = status === null ? LISTED : STATUS_RULES[status];
  const listedAfter = now - ENDED_LEASE_RETENTION_MS;
  return allOf({ agent_name: agentName, agent_id: agentId, path }, rule, {
    ...(rule.includes(':now') ? { now } : {}),
    ...(rule.includes(':listedAfter') ? { listedAfter } : {}),
  });
}
