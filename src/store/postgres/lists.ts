/** Lists and counts credentials by path, in steps that each read a bounded number of paths. */
import type { CountedCredential } from '../../core/credential.ts';
import { rangeFrom } from '../../core/pattern.ts';
import { toCredential } from '../decode-rows.ts';
import type { CountStep, CredentialCursor, CredentialQuery, ListStep } from '../queries.ts';
import type { Connection } from './connection.ts';

/** Paths per step: a few milliseconds of the server. */
const STEP_PATHS = 5000;

/** The paths of a step, from `low` up to and including `last`. */
interface Window {
  readonly low: string;
  readonly last: string;
  readonly isFull: boolean;
}

export async function listCredentials(
  connection: Connection,
  query: CredentialQuery,
  place: CredentialCursor,
  limit: number,
): Promise<ListStep<CountedCredential, CredentialCursor>> {
  const window = await findChunk(connection, query, place);
  if (!('low' in window)) return { rows: [], next: window.next };
  const { low, last, isFull } = window;
  const some = await connection.query`
    WITH page AS (
      SELECT id, path, type, description, created_at, updated_at, version FROM credentials WHERE path >= ${low} AND path <= ${last} AND (${query.type}::text IS NULL OR type = ${query.type})
      ORDER BY path LIMIT ${limit}::bigint
    ), since AS (
      SELECT credential_id, count(*) AS n FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress)
      AND credential_id IN (SELECT id FROM page) GROUP BY credential_id
    )
    SELECT page.id, page.path, page.type, page.description, page.created_at, page.updated_at, page.version,
      coalesce(access_counts.count, 0) + coalesce(since.n, 0) AS access_count FROM page
    LEFT JOIN access_counts ON access_counts.credential_id = page.id
    LEFT JOIN since ON since.credential_id = page.id ORDER BY path`;
  const rows = some.map((row) => ({ ...toCredential(row), accessCount: Number(row['access_count']) }));
  const stoppedAt = rows.length < limit ? null : (rows.at(-1)?.path ?? null);
  if (stoppedAt !== null) return { rows, next: { range: place.range, after: stoppedAt } };
  return { rows, next: nextCursor(query, place, isFull ? last : null) };
}

export async function countCredentials(
  connection: Connection,
  query: CredentialQuery,
  place: CredentialCursor,
  atMost: number,
): Promise<CountStep<CredentialCursor>> {
  const window = await findChunk(connection, query, place);
  if (!('low' in window)) return { count: 0, next: window.next };
  const { low, last, isFull } = window;
  const [row] = await connection.query`
    SELECT count(*) AS n, max(path) AS nth FROM (
      SELECT path FROM credentials WHERE path >= ${low} AND path <= ${last} AND (${query.type}::text IS NULL OR type = ${query.type})
      ORDER BY path LIMIT ${atMost}::bigint) AS counted`;
  const count = Number(row?.['n'] ?? 0);
  if (count === atMost) return { count, next: { range: place.range, after: String(row?.['nth']) } };
  return { count, next: nextCursor(query, place, isFull ? last : null) };
}

/** The cursor after a path, or after the range; null at the end. */
function nextCursor(
  { ranges }: CredentialQuery,
  { range }: CredentialCursor,
  path: string | null,
): CredentialCursor | null {
  if (path !== null) return { range, after: path };
  return range + 1 < ranges.length ? { range: range + 1, after: '' } : null;
}

async function findChunk(
  connection: Connection,
  { ranges }: CredentialQuery,
  { range, after }: CredentialCursor,
): Promise<Window | { readonly next: CredentialCursor | null }> {
  const bounds = ranges[range];
  if (bounds === undefined) return { next: null };
  // '!' sorts before every character of a path.
  const behindAfter = after === '' ? '' : `${after}!`;
  const low = behindAfter > bounds.from ? behindAfter : bounds.from;
  const [row] = await connection.query`
    SELECT max(path) AS last, count(*) AS n,
      (SELECT path FROM credentials WHERE path >= ${bounds.to} ORDER BY path LIMIT 1) AS next FROM (
      SELECT path FROM credentials WHERE path >= ${low} AND path < ${bounds.to} ORDER BY path LIMIT ${STEP_PATHS}) AS step`;
  if (typeof row?.['last'] !== 'string') {
    // WHY: an agent may have many ranges, most of them empty; the next path skips all empty ones.
    const range = typeof row?.['next'] === 'string' ? rangeFrom(ranges, row['next']) : ranges.length;
    return { next: range < ranges.length ? { range, after: '' } : null };
  }
  return { low, last: row['last'], isFull: row['n'] === STEP_PATHS };
}
