/**
 * The list of credentials, step by step: each looks at a bounded number of keys, in their order, wherever it begins.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CountedCredential } from '../../core/credential.ts';
import { rangeFrom } from '../../core/pattern.ts';
import { toCredential } from '../decode-rows.ts';
import type { CountStep, CredentialCursor, CredentialQuery, ListStep } from '../queries.ts';
import type { AccessCounts } from './access-counts.ts';
import { CREDENTIAL_COLUMNS } from './rows.ts';
import { scanUntilDeadline, WINDOW_ROWS } from './time-slice.ts';

/** First and last path, inclusive. */
interface Window {
  readonly low: string;
  readonly last: string;
}

const IN_WINDOW = 'path >= :low AND path <= :last AND (:type IS NULL OR type = :type)';

export class Lists {
  readonly #counts: AccessCounts;
  readonly #window: StatementSync;
  readonly #next: StatementSync;
  readonly #rows: StatementSync;
  readonly #count: StatementSync;
  readonly #nth: StatementSync;

  constructor(database: DatabaseSync, counts: AccessCounts) {
    this.#counts = counts;
    this.#window = database.prepare(
      `SELECT max(path) AS last, count(*) AS n FROM
         (SELECT path FROM credentials WHERE path >= ? AND path < ? ORDER BY path LIMIT ${WINDOW_ROWS})`,
    );
    this.#next = database.prepare('SELECT path FROM credentials WHERE path >= ? ORDER BY path LIMIT 1');
    this.#rows = database.prepare(
      `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE ${IN_WINDOW} ORDER BY path LIMIT :limit`,
    );
    this.#count = database.prepare(`SELECT count(*) AS n FROM credentials WHERE ${IN_WINDOW}`);
    this.#nth = database.prepare(`SELECT path FROM credentials WHERE ${IN_WINDOW} ORDER BY path LIMIT 1 OFFSET :nth`);
  }

  credentials(
    query: CredentialQuery,
    from: CredentialCursor,
    limit: number,
  ): ListStep<CountedCredential, CredentialCursor> {
    const rows: CountedCredential[] = [];
    const next = scanUntilDeadline(
      from,
      (place) =>
        this.#look(query, place, ({ low, last }) => {
          const wanted = limit - rows.length;
          const some = this.#rows.all({ low, last, type: query.type, limit: wanted });
          for (const row of some)
            rows.push({ ...toCredential(row), accessCount: this.#counts.get(Number(row['count_id'])) });
          return some.length < wanted ? null : (rows.at(-1)?.path ?? place.after);
        }),
      () => rows.length >= limit,
    );
    return { rows, next };
  }

  countCredentials(query: CredentialQuery, from: CredentialCursor, atMost: number): CountStep<CredentialCursor> {
    let count = 0;
    const next = scanUntilDeadline(
      from,
      (place) =>
        this.#look(query, place, ({ low, last }) => {
          const values = { low, last, type: query.type };
          const left = atMost - count;
          const found = Number(this.#count.get(values)?.['n'] ?? 0);
          count += Math.min(found, left);
          return found < left ? null : String(this.#nth.get({ ...values, nth: left - 1 })?.['path']);
        }),
      () => count >= atMost,
    );
    return { count, next };
  }

  /**
   * Has the next window looked at. `look` answers the path behind which it goes on, where that is not the window's
   * last.
   */
  #look(
    { ranges }: CredentialQuery,
    { range, after }: CredentialCursor,
    look: (window: Window) => string | null,
  ): CredentialCursor | null {
    const bounds = ranges[range];
    if (bounds === undefined) return null;
    // '!' sorts before every character of a path.
    const behind = after === '' ? '' : `${after}!`;
    const low = behind > bounds.from ? behind : bounds.from;
    const { last, n } = this.#window.get(low, bounds.to) ?? {};
    // WHY: an agent may have many ranges, most of them empty; the next path skips all empty ones.
    if (typeof last !== 'string') return this.#rangeOfNext(ranges, bounds.to);
    const stoppedAt = look({ low, last });
    if (stoppedAt !== null) return { range, after: stoppedAt };
    return n === WINDOW_ROWS ? { range, after: last } : { range: range + 1, after: '' };
  }

  /** The first range that may contain the next existing path; null at the end. */
  #rangeOfNext(ranges: CredentialQuery['ranges'], from: string): CredentialCursor | null {
    const path = this.#next.get(from)?.['path'];
    return typeof path === 'string' ? { range: rangeFrom(ranges, path), after: '' } : null;
  }
}
