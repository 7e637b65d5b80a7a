/** The SQL that only SQLite needs. */
import { type Dialect, numberIn, ordered, toCounted, unionAll } from '../dialect.ts';
import { CREDENTIALS } from '../schema.ts';
import { raw, sql } from '../statement.ts';
import type { AccessCounts } from './access-counts.ts';
import { findLeaseChunk } from './lease-blocks.ts';

/** About 0.1 ms. */
const CHUNK_ROWS = 256;
/** About half a millisecond with the index of the filters. */
const CHUNK_ENTRIES = 4096;
const MAX_GLOB_ENTRIES = 1024;
/** A malicious glob of the greatest length takes 4 ms for an entry. */
const MIN_GLOB_ENTRIES = 8;

/** Fewer for a long glob: in the worst case, the time for an entry grows with the length after the first `*`. */
function chunkEntries(glob: string | null): number {
  const star = glob?.indexOf('*') ?? -1;
  if (glob === null || star === -1 || star === glob.length - 1) return CHUNK_ENTRIES;
  return Math.max(MIN_GLOB_ENTRIES, Math.min(MAX_GLOB_ENTRIES, Math.floor(8192 / (glob.length - star))));
}

export const sqliteDialect = (counts: AccessCounts): Dialect => ({
  // ORDER: values move from the first to the second, so that one that moves during a pass is found there.
  sealedSources: [
    '(SELECT id AS credential_id, version, type, newest_sealed AS sealed FROM credentials WHERE newest_sealed IS NOT NULL)',
    'credential_versions',
  ],
  chunkRows: CHUNK_ROWS,
  chunkEntries,
  findLeaseChunk: (agentName, before) => findLeaseChunk(agentName, before, CHUNK_ROWS),
  newestValues: (from, through) =>
    sql`SELECT id AS credential_id, version, type, newest_sealed AS sealed FROM credentials
      WHERE id >= ${from} AND id <= ${through} AND newest_sealed IS NOT NULL`,
  // Brackets are special to SQLite, and not in the filter.
  matchesGlob: (glob) => sql`resource GLOB ${glob.replaceAll('[', '[[]')}`,
  contains: (column, text) => sql`instr(lower(${raw(column)}), ${text}) > 0`,
  isOneOf: (column, texts) => sql`${raw(column)} IN (SELECT value FROM json_each(${JSON.stringify(texts)}))`,
  // SQLite merges ordered reads row by row.
  merge: (reads, order, limit) => ordered(unionAll(reads), order, limit),
  connectedPrograms: null,
  *selectCredentials(where, limit) {
    const rows =
      yield sql`SELECT ${CREDENTIALS.list}, count_id FROM credentials WHERE ${where} ORDER BY path LIMIT ${limit}`;
    return rows.map((row) => toCounted(row, counts.get(numberIn(row, 'count_id'))));
  },
});
