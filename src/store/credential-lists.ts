/** Lists and counts credentials by path, in steps that each read a bounded number of paths. */

import type { CredentialPath } from '../core/path.ts';
import { rangeFrom } from '../core/pattern.ts';
import type { CountedCredential } from '../vault/credentials/credential.ts';
import { type Dialect, numberIn } from './dialect.ts';
import type { CountStep, CredentialCursor, CredentialListQuery, ListStep } from './queries.ts';
import { and, type Procedure, type Statement, scanUntilDeadline, sql } from './statement.ts';

/** Credentials in the order of their paths, beginning at the cursor; 1 to `limit` rows. */
export function* listCredentials(
  dialect: Dialect,
  query: CredentialListQuery,
  from: CredentialCursor,
  limit: number,
): Procedure<ListStep<CountedCredential, CredentialCursor>> {
  const rows: CountedCredential[] = [];
  const next = yield* scanUntilDeadline(
    from,
    (cursor) =>
      visitChunk(dialect, query, cursor, function* (where) {
        rows.push(...(yield* dialect.selectCredentials(where, limit - rows.length)));
        return rows.length < limit ? null : (rows.at(-1)?.path ?? null);
      }),
    () => rows.length >= limit,
  );
  return { rows, next };
}

/** Counts from the cursor on, and stops after `atMost`, which is at least 1. */
export function* countCredentials(
  dialect: Dialect,
  query: CredentialListQuery,
  from: CredentialCursor,
  atMost: number,
): Procedure<CountStep<CredentialCursor>> {
  let count = 0;
  const next = yield* scanUntilDeadline(
    from,
    (cursor) =>
      visitChunk(dialect, query, cursor, function* (where, inChunk) {
        if (query.type === null && inChunk <= atMost - count) {
          count += inChunk;
          return null;
        }
        const [row] = yield sql`SELECT count(*) AS n, max(path) AS last FROM
          (SELECT path FROM credentials WHERE ${where} ORDER BY path LIMIT ${atMost - count}) AS counted`;
        count += numberIn(row, 'n');
        return count < atMost ? null : String(row?.['last']);
      }),
    () => count >= atMost,
  );
  return { count, next };
}

export interface NamedCredential {
  readonly path: CredentialPath;
  readonly description: string;
}

/** The credentials from a path on whose paths contain the text, which is in lower case, by path. */
export function* searchCredentials(
  { chunkRows, contains }: Dialect,
  text: string,
  from: string,
): Procedure<ListStep<NamedCredential, string>> {
  const rows: NamedCredential[] = [];
  const next = yield* scanUntilDeadline(from, function* (cursor) {
    // The last row has the end of the chunk.
    const found = yield sql`WITH chunk AS
        (SELECT path, description FROM credentials WHERE path >= ${cursor} ORDER BY path LIMIT ${chunkRows})
      SELECT path, description, 0 AS is_end, 0 AS n FROM chunk WHERE ${contains('path', text)}
      UNION ALL SELECT max(path), '', 1, count(*) FROM chunk ORDER BY is_end, path`;
    for (const { path, description, is_end } of found) {
      if (Number(is_end) === 0) rows.push({ path: String(path) as CredentialPath, description: String(description) });
    }
    const end = found.at(-1);
    return numberIn(end, 'n') === chunkRows ? `${String(end?.['path'])}!` : null;
  });
  return { rows, next };
}

/**
 * Visits the next paths of a range, with the condition that selects the wanted credentials among them and the number
 * of all. `visit` returns
 * the path after which to continue, or null after the whole chunk.
 */
function* visitChunk(
  { chunkRows }: Dialect,
  { ranges, type }: CredentialListQuery,
  { range, after }: CredentialCursor,
  visit: (where: Statement, inChunk: number) => Procedure<string | null>,
): Procedure<CredentialCursor | null> {
  const bounds = ranges[range];
  if (bounds === undefined) return null;
  // '!' sorts before every character of a path.
  const afterCursor = after === '' ? '' : `${after}!`;
  const low = afterCursor > bounds.from ? afterCursor : bounds.from;
  const [chunk] = yield sql`SELECT max(path) AS last, count(*) AS n FROM
    (SELECT path FROM credentials WHERE path >= ${low} AND path < ${bounds.to} ORDER BY path LIMIT ${chunkRows}) AS chunk`;
  const last = chunk?.['last'];
  if (typeof last !== 'string') {
    // WHY: an agent may have many ranges, most of them empty; the next path skips all empty ones.
    const [row] = yield sql`SELECT path FROM credentials WHERE path >= ${bounds.to} ORDER BY path LIMIT 1`;
    return row === undefined ? null : { range: rangeFrom(ranges, String(row['path'])), after: '' };
  }
  const inChunk = sql`path >= ${low} AND path <= ${last}`;
  const size = numberIn(chunk, 'n');
  const stoppedAt = yield* visit(type === null ? inChunk : and(inChunk, sql`type = ${type}`), size);
  if (stoppedAt !== null) return { range, after: stoppedAt };
  return size === chunkRows ? { range, after: last } : { range: range + 1, after: '' };
}
