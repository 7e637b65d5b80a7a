/**
 * Who has seen or used each version. The leases are the record of the last days; before a lease may be deleted, it is
 * folded into the stored exposures. WHY not with each retrieval: that would write another row, at a random position.
 * INVARIANT: an exposure is the stored one plus the leases after `through_seq`, without those that have a token.
 */

import type { ActorName } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Exposure } from '../vault/exposure/exposure-record.ts';
import { ENDED_LEASE_RETENTION_MS } from '../vault/leases/lease.ts';
import { type Dialect, numberIn } from './dialect.ts';
import { EXPOSURES } from './schema.ts';
import { type ListStep, type Procedure, type Row, raw, type Statement, scanUntilDeadline, sql } from './statement.ts';

/** The exposures of a path, of an agent, or all. At most one of the two is not null. */
export interface ExposureFilter {
  readonly path: CredentialPath | null;
  readonly agentName: ActorName | null;
}

/** `newestVersion`: of the credential; null if it was deleted. */
export interface StoredExposure extends Exposure {
  readonly newestVersion: number | null;
}

/** An exposure by leases. `times` is 0 if they are counted among the stored exposures, or have a token. */
export interface LeaseExposure extends StoredExposure {
  readonly hasToken: boolean;
  readonly isLive: boolean;
}

export type ExposureCursor = readonly [
  path: string,
  credentialId: string,
  version: number,
  kind: string,
  agent: string,
];
export const FIRST_EXPOSURE: ExposureCursor = ['', '', 0, '', ''];

const FOLD_INTERVAL_MS = 3_600_000;
/** A day before the first of the leases can be deleted. */
const FOLD_AGE_MS = ENDED_LEASE_RETENTION_MS - 24 * FOLD_INTERVAL_MS;
const KEY = raw(EXPOSURES.key.join(', '));
const TIMES = raw('times = exposures.times + excluded.times');
const THROUGH_SEQ = sql`SELECT through_seq FROM exposure_progress WHERE id = 1`;

export function addExposure(exposure: Exposure): Statement {
  const values = EXPOSURES.encode(exposure)
    .map((value) => sql`${value}`)
    .reduce((all, value) => sql`${all}, ${value}`);
  return sql`INSERT INTO exposures (${EXPOSURES.list}) VALUES (${values})
    ON CONFLICT (${KEY}) DO UPDATE SET last_at = excluded.last_at, ${TIMES}`;
}

/**
 * The entry up to which leases are folded in. It changes whenever a lease becomes part of the stored exposures, without
 * which none is deleted.
 */
export function* readExposureProgress(): Procedure<number> {
  const [row] = yield THROUGH_SEQ;
  return numberIn(row, 'through_seq');
}

/**
 * Folds up to `limit` of the leases that were issued long enough ago, oldest first. Returns whether none is left; then
 * every lease that may be deleted at `now` is folded in. WHY once an hour: reads are repeated if the progress changes.
 */
export function* foldExposures(now: number, limit: number): Procedure<boolean> {
  const issuedBefore = Math.floor(now / FOLD_INTERVAL_MS) * FOLD_INTERVAL_MS - FOLD_AGE_MS;
  const through = yield* readExposureProgress();
  const [oldest] = yield sql`SELECT issued_at FROM leases WHERE seq > ${through} ORDER BY seq LIMIT 1`;
  if (oldest === undefined || numberIn(oldest, 'issued_at') >= issuedBefore) return true;
  const [chunk] = yield sql`SELECT max(seq) AS last, count(*) AS n FROM
    (SELECT seq, issued_at FROM leases WHERE seq > ${through} ORDER BY seq LIMIT ${limit}) AS chunk
    WHERE issued_at < ${issuedBefore}`;
  const last = chunk?.['last'];
  if (typeof last !== 'number') return true;
  yield sql`INSERT INTO exposures (${EXPOSURES.list})
    SELECT path, credential_id, version, kind, agent_name, min(issued_at), max(issued_at), count(*) FROM leases
    WHERE seq > ${through} AND seq <= ${last} AND token_hash IS NULL GROUP BY ${KEY}
    ON CONFLICT (${KEY}) DO UPDATE SET last_at = excluded.last_at, ${TIMES}`;
  yield sql`INSERT INTO exposure_progress (id, through_seq) VALUES (1, ${last})
    ON CONFLICT (id) DO UPDATE SET through_seq = excluded.through_seq`;
  return numberIn(chunk, 'n') < limit;
}

/** The stored exposures after the cursor, in key order; at most `limit`. */
export function* listExposures(
  filter: ExposureFilter,
  after: ExposureCursor,
  limit: number,
): Procedure<ListStep<StoredExposure, ExposureCursor>> {
  const [path, credentialId, version, kind, agent] = after;
  const rows = yield sql`SELECT page.*, c.version AS newest FROM (
      SELECT ${EXPOSURES.list} FROM exposures
      WHERE ${matches(filter)} AND (${KEY}) > (${path}, ${credentialId}, ${version}, ${kind}, ${agent})
      ORDER BY ${KEY} LIMIT ${limit}
    ) AS page LEFT JOIN credentials c ON c.id = page.credential_id
    ORDER BY ${EXPOSURES.listOf('page.')} LIMIT ${limit}`;
  const last = rows.length < limit ? undefined : rows.at(-1);
  return { rows: rows.map(toStored), next: last === undefined ? null : toCursor(EXPOSURES.decode(last)) };
}

/** A step through the leases before `beforeSeq`, newest first. `now` decides which are active. */
export function* listLeaseExposures(
  dialect: Dialect,
  filter: ExposureFilter,
  throughSeq: number,
  now: number,
  beforeSeq: number,
): Procedure<ListStep<LeaseExposure, number>> {
  const rows: LeaseExposure[] = [];
  const next = yield* scanUntilDeadline(beforeSeq, function* (before) {
    const chunk = yield* dialect.findLeaseChunk(filter.agentName, before);
    if (chunk === null) return null;
    const found = yield sql`SELECT page.*, c.version AS newest FROM (
        SELECT path, credential_id, version, kind, agent_name, min(issued_at) AS first_at, max(issued_at) AS last_at,
          count(CASE WHEN seq > ${throughSeq} AND token_hash IS NULL THEN 1 END) AS times,
          CASE WHEN token_hash IS NULL THEN 0 ELSE 1 END AS has_token,
          max(CASE WHEN expires_at > ${now} AND revoked_at IS NULL THEN 1 ELSE 0 END) AS is_live
        FROM effective_leases l WHERE seq >= ${chunk.from} AND seq < ${chunk.before} AND ${matches(filter)}
        GROUP BY ${KEY}, CASE WHEN token_hash IS NULL THEN 0 ELSE 1 END
      ) AS page LEFT JOIN credentials c ON c.id = page.credential_id`;
    for (const row of found) {
      const [hasToken, isLive] = [numberIn(row, 'has_token') === 1, numberIn(row, 'is_live') === 1];
      rows.push({ ...toStored(row), hasToken, isLive });
    }
    return chunk.next;
  });
  return { rows, next };
}

function matches({ path, agentName }: ExposureFilter): Statement {
  if (path !== null) return sql`path = ${path}`;
  return agentName === null ? raw('true') : sql`agent_name = ${agentName}`;
}

const toCursor = ({ path, credentialId, version, kind, agentName }: Exposure): ExposureCursor => [
  path,
  credentialId,
  version,
  kind,
  agentName,
];

const toStored = (row: Row): StoredExposure => ({
  ...EXPOSURES.decode(row),
  newestVersion: typeof row['newest'] === 'number' ? row['newest'] : null,
});
