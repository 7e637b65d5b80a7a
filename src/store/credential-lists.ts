/** Lists, counts and searches credentials by path, in steps that each read a bounded number of paths. */

import type { CredentialPath } from '../core/path.ts';
import { type PathRange, rangeFrom } from '../core/pattern.ts';
import type { CountedCredential } from '../vault/credentials/credential.ts';
import { type Dialect, numberIn } from './dialect.ts';
import {
  and,
  type CountStep,
  type ListStep,
  type Procedure,
  type Statement,
  scanUntilDeadline,
  sql,
} from './statement.ts';

export interface CredentialListQuery {
  /** The ranges in order, without overlaps. */
  readonly ranges: readonly PathRange[];
  readonly type: string | null;
}

/** Position in the list of credentials: after the path `after` in the range with that index. */
export interface CredentialCursor {
  readonly range: number;
  readonly after: string;
}

export const FIRST_CREDENTIAL: CredentialCursor = { range: 0, after: '' };

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
 * of all. `visit` returns the path after which to continue, or null after the whole chunk.
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

/** The paths that begin with `base` (empty, or a path and a slash), up to, not including, `end`. */
export interface LevelQuery {
  readonly base: string;
  readonly end: string;
}

interface LevelEntry {
  readonly name: string;
  /** The number of credentials that the step found below a directory. */
  readonly count: number;
  /** The fields of a credential; null for a directory. */
  readonly credential: { readonly type: string; readonly updatedAt: number } | null;
}

/** `next`: the path from which the next step continues; null at the end. A directory may be in several steps. */
export interface LevelStep {
  readonly entries: readonly LevelEntry[];
  readonly next: string | null;
}

/** Credentials that are read in one statement. Further ones of a directory are only counted. */
const ROWS = 256;

export function* readLevel({ chunkRows }: Dialect, { base, end }: LevelQuery, from: string): Procedure<LevelStep> {
  const entries: { name: string; count: number; credential: LevelEntry['credential'] }[] = [];
  const next = yield* scanUntilDeadline(from, function* (cursor) {
    const rows = yield sql`SELECT path, type, updated_at FROM credentials
      WHERE path >= ${cursor} AND path < ${end} ORDER BY path LIMIT ${ROWS}`;
    let last = '';
    let directory: (typeof entries)[number] | null = null;
    for (const row of rows) {
      last = String(row['path']);
      const slash = last.indexOf('/', base.length);
      const name = slash === -1 ? last.slice(base.length) : last.slice(base.length, slash);
      if (slash !== -1 && directory?.name === name) {
        directory.count += 1;
        continue;
      }
      const credential = slash === -1 ? { type: String(row['type']), updatedAt: numberIn(row, 'updated_at') } : null;
      const entry: (typeof entries)[number] = { name, count: 1, credential };
      entries.push(entry);
      directory = slash === -1 ? null : entry;
    }
    if (rows.length < ROWS) return null;
    // '!' sorts before every character of a path, and '0' follows '/'.
    if (directory === null) return `${last}!`;
    const directoryEnd = `${base}${directory.name}0`;
    const [rest] = yield sql`SELECT max(path) AS last, count(*) AS n FROM (SELECT path FROM credentials
      WHERE path > ${last} AND path < ${directoryEnd} ORDER BY path LIMIT ${chunkRows}) AS rest`;
    const counted = numberIn(rest, 'n');
    directory.count += counted;
    return counted < chunkRows ? directoryEnd : `${String(rest?.['last'])}!`;
  });
  return { entries, next };
}
