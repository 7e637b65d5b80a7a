/** The SQL that only SQLite needs. */
import { type Dialect, numberIn, ordered, toCounted, unionAll } from '../dialect.ts';
import { CREDENTIALS } from '../schema.ts';
import { raw, sql } from '../statement.ts';
import type { AccessCounts } from './access-counts.ts';
import { findLeaseChunk } from './lease-blocks.ts';

/** A chunk takes about 0.1 ms. */
const CHUNK_ROWS = 256;
/** About half a millisecond with the index of the filters. */
const CHUNK_ENTRIES = 4096;
/** A chunk takes 3 ms at most. */
const CHUNK_COMPARISONS = 512 * 1024;

export const sqliteDialect = (counts: AccessCounts): Dialect => ({
  // ORDER: values move from the first to the second, so that one that moves during a pass is found there.
  valueSources: [
    '(SELECT id AS credential_id, version, type, newest_sealed AS sealed FROM credentials WHERE newest_sealed IS NOT NULL)',
    'credential_versions',
  ],
  chunkRows: CHUNK_ROWS,
  chunkEntries: CHUNK_ENTRIES,
  chunkComparisons: CHUNK_COMPARISONS,
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
