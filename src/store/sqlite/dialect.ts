/** The SQL that only SQLite needs. */
import { type Dialect, numberIn, toCounted } from '../dialect.ts';
import { CREDENTIALS } from '../schema.ts';
import { sql } from '../statement.ts';
import type { AccessCounts } from './access-counts.ts';
import { findLeaseChunk } from './lease-blocks.ts';

/** About 0.1 ms. */
const CHUNK_ROWS = 256;
/** Fewer than for other rows: a malicious glob takes half a millisecond per entry. */
const CHUNK_ENTRIES = 32;

export const sqliteDialect = (counts: AccessCounts): Dialect => ({
  chunkRows: CHUNK_ROWS,
  chunkEntries: CHUNK_ENTRIES,
  findLeaseChunk: (agentName, before) => findLeaseChunk(agentName, before, CHUNK_ROWS),
  matchesGlob: (glob) => sql`glob_matches(${glob}, resource)`,
  *selectCredentials(where, limit) {
    const rows =
      yield sql`SELECT ${CREDENTIALS.list}, count_id FROM credentials WHERE ${where} ORDER BY path LIMIT ${limit}`;
    return rows.map((row) => toCounted(row, counts.get(numberIn(row, 'count_id'))));
  },
});
