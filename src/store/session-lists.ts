/** Lists sessions in the order of their ends, in steps. The MACs of the rows are not checked. */
import type { AgentId } from '../core/names.ts';
import { SESSIONS } from './schema.ts';
import { type Procedure, sql } from './statement.ts';

export interface SessionCursor {
  readonly expiresAt: number;
  readonly tokenHash: string;
}

export interface ListedSession extends SessionCursor {
  readonly agentId: AgentId;
  readonly issuedAt: number;
}

/** The sessions that end after the cursor, in that order; at most `limit` rows, at least 1. */
export function* listSessions(after: SessionCursor, limit: number): Procedure<readonly ListedSession[]> {
  const rows = yield sql`SELECT ${SESSIONS.list} FROM sessions
    WHERE (expires_at, token_hash) > (${after.expiresAt}, ${after.tokenHash})
    ORDER BY expires_at, token_hash LIMIT ${limit}`;
  return rows.map((row) => SESSIONS.decode(row));
}

/** Counts the sessions that end after the cursor, at most `limit`. `last` is null if no session follows. */
export function* countOpenSessions(
  after: SessionCursor,
  limit: number,
): Procedure<{ readonly count: number; readonly last: SessionCursor | null }> {
  const rows = yield sql`SELECT expires_at, token_hash FROM sessions
    WHERE (expires_at, token_hash) > (${after.expiresAt}, ${after.tokenHash})
    ORDER BY expires_at, token_hash LIMIT ${limit}`;
  const last = rows.at(-1);
  if (last === undefined) return { count: 0, last: null };
  return {
    count: rows.length,
    last: { expiresAt: Number(last['expires_at']), tokenHash: String(last['token_hash']) },
  };
}
