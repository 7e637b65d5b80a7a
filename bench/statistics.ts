// What PostgreSQL itself says of its work: pg_stat_statements, pg_stat_wal and pg_stat_io, between two looks.

import type { PostgresServer } from '../test/kit/postmaster.ts';

export interface DatabaseWork {
  /** Of all statements but the one that waits for the head's lock, in milliseconds. */
  readonly workMs: number;
  /** Waiting for the head's lock, in milliseconds, of all nodes together. */
  readonly lockMs: number;
  readonly turns: number;
  readonly walBytes: number;
  /** Of the write-ahead log. */
  readonly syncs: number;
  readonly syncMs: number;
}

export async function resetStatistics(server: PostgresServer): Promise<void> {
  await server.query('SELECT pg_stat_statements_reset()');
  await server.query("SELECT pg_stat_reset_shared('wal')");
  await server.query("SELECT pg_stat_reset_shared('io')");
}

export async function readStatistics(server: PostgresServer): Promise<DatabaseWork> {
  const [row = {}] = await server.query(`
    SELECT sum(total_exec_time) FILTER (WHERE query NOT LIKE '%FOR UPDATE%') AS work,
      sum(total_exec_time) FILTER (WHERE query LIKE '%audit_head%FOR UPDATE%') AS locks,
      sum(calls) FILTER (WHERE query LIKE '%audit_head%FOR UPDATE%') AS turns,
      (SELECT wal_bytes FROM pg_stat_wal) AS wal,
      (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal') AS syncs,
      (SELECT sum(fsync_time) FROM pg_stat_io WHERE object = 'wal') AS sync_ms
    FROM pg_stat_statements`);
  return {
    workMs: Number(row['work']),
    lockMs: Number(row['locks']),
    turns: Number(row['turns']),
    walBytes: Number(row['wal']),
    syncs: Number(row['syncs']),
    syncMs: Number(row['sync_ms']),
  };
}

/** The statements that took the longest in all, for a person who asks why. */
export async function slowestStatements(server: PostgresServer, retrievals: number): Promise<string[]> {
  const rows = await server.query(`
    SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 60) AS query, calls, total_exec_time AS ms
    FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 12`);
  return rows.map((row) => {
    const each = ((Number(row['ms']) / retrievals) * 1000).toFixed(1);
    return `${each} µs a retrieval in ${String(row['calls'])} calls: ${String(row['query'])}`;
  });
}
