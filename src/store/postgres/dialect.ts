/** The SQL that only PostgreSQL needs. */
import type { CredentialId } from '../../core/names.ts';
import { type Dialect, numberIn, ordered, toCounted, unionAll } from '../dialect.ts';
import { CREDENTIALS } from '../schema.ts';
import { type Procedure, raw, type Statement, sql } from '../statement.ts';
import type { Head } from '../stored-data.ts';

/** The rows that PostgreSQL reads in a few milliseconds. */
const CHUNK_ROWS = 5000;
const CHUNK_ENTRIES = 20_000;
const CHUNK_COMPARISONS = 1024 * 1024;

const toLike = (glob: string): string =>
  glob
    .replaceAll(/[\\%_]/g, '\\$&')
    .replaceAll(/\*+/g, '%')
    .replaceAll('?', '_');

export const POSTGRES_DIALECT: Dialect = {
  valueSources: ['credential_versions'],
  chunkRows: CHUNK_ROWS,
  chunkEntries: CHUNK_ENTRIES,
  chunkComparisons: CHUNK_COMPARISONS,
  *findLeaseChunk(agentName, before) {
    const ofAgent = agentName === null ? raw('') : sql` AND agent_name = ${agentName}`;
    const [chunk] = yield sql`SELECT min(seq) AS first, count(*) AS n FROM
      (SELECT seq FROM leases WHERE seq < ${before}${ofAgent} ORDER BY seq DESC LIMIT ${CHUNK_ROWS}) AS chunk`;
    const from = chunk?.['first'];
    if (typeof from !== 'number') return null;
    return { from, before, next: numberIn(chunk, 'n') === CHUNK_ROWS ? from : null };
  },
  newestValues: null,
  matchesGlob: (glob) => sql`resource LIKE ${toLike(glob)}`,
  contains: (column, text) => sql`strpos(lower(${raw(column)}), ${text}) > 0`,
  isOneOf: (column, texts) => sql`${raw(column)} = ANY(${textArray(texts)}::text[])`,
  merge(reads, order, limit) {
    // WHY each has a limit: PostgreSQL sorts all rows of reads without one.
    const limited = reads.map((read) => sql`(${ordered(read, order, limit)})`);
    return ordered(unionAll(reads.length === 1 ? reads : limited), order, limit);
  },
  // WHY only this role: PostgreSQL hides the names of the connections of other roles.
  connectedPrograms: sql`SELECT DISTINCT application_name AS name FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name LIKE 'leasehold %'`,
  // A count is the stored count plus the retrievals that it does not include yet.
  *selectCredentials(where, limit) {
    const rows = yield sql`
      WITH page AS (
        SELECT ${CREDENTIALS.list} FROM credentials WHERE ${where} ORDER BY path LIMIT ${limit}
      ), since AS (
        SELECT credential_id, count(*) AS n FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress)
        AND kind = 'retrieve' AND credential_id IN (SELECT id FROM page) GROUP BY credential_id
      )
      SELECT ${CREDENTIALS.listOf('page.')}, coalesce(access_counts.count, 0) + coalesce(since.n, 0) AS access_count FROM page
      LEFT JOIN access_counts ON access_counts.credential_id = page.id
      LEFT JOIN since ON since.credential_id = page.id ORDER BY path`;
    return rows.map((row) => toCounted(row, numberIn(row, 'access_count')));
  },
};

export function* readAccessCount(id: CredentialId): Procedure<number> {
  const [row] = yield sql`
    SELECT coalesce((SELECT count FROM access_counts WHERE credential_id = ${id}), 0)
      + (SELECT count(*) FROM leases WHERE seq > (SELECT through_seq FROM access_count_progress) AND credential_id = ${id} AND kind = 'retrieve') AS n,
      EXISTS (SELECT 1 FROM credentials WHERE id = ${id}) AS is_there`;
  return row?.['is_there'] === true ? numberIn(row, 'n') : 0;
}

export function insertHead({ seq, hmac, mac, epoch, tree, control }: Head): Statement {
  return sql`INSERT INTO audit_head (id, seq, hmac, mac, epoch, tree, control)
    VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch}, ${tree}, ${control})`;
}

/** An array literal. SOURCE: postgresql.org/docs/current/arrays.html, "Array Input and Output Syntax". */
export function textArray(texts: Iterable<string>): string {
  const quoted = Array.from(texts, (text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`);
  return `{${quoted.join(',')}}`;
}

export function numberArray(numbers: Iterable<number>): string {
  return `{${[...numbers].join(',')}}`;
}
