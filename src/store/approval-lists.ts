/** Lists approvals, newest first, and finds those that the server has to settle. */

import type { AgentId } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import { APPROVAL_STATUSES, type Approval, type ApprovalId, type ApprovalStatus } from '../vault/approvals/approval.ts';
import { type Dialect, numberIn } from './dialect.ts';
import { APPROVALS } from './schema.ts';
import {
  and,
  type CountStep,
  type ListStep,
  type Procedure,
  type Row,
  raw,
  type Statement,
  scanUntilDeadline,
  sql,
} from './statement.ts';
import type { Authenticated } from './stored-data.ts';

export interface ApprovalQuery {
  readonly agentId: AgentId | null;
  readonly agentName: string | null;
  readonly status: ApprovalStatus | null;
  /** Milliseconds; decides which ones have timed out. */
  readonly now: number;
}

/** Approvals are listed newest first; the cursor is the id of the last one read, and greater than any at first. */
export const NEWEST_APPROVAL = '~';

/** The number of approvals of one key that a decision reads, the newest ones. */
export const MAX_APPROVALS_OF_KEY = 16;

/** Counted in one step. */
const CHUNK_ROWS = 1000;
/** Read between two checks of the clock. */
const LIVE_CHUNK_ROWS = 256;

/** The approvals before the id, newest first; at most `limit` rows, at least 1. */
export function* listApprovals(
  dialect: Dialect,
  query: ApprovalQuery,
  beforeId: string,
  limit: number,
): Procedure<ListStep<Authenticated<Approval>, string>> {
  const rows = yield selectFirst(dialect, APPROVALS.list, query, beforeId, limit);
  const approvals = rows.map((row) => APPROVALS.decode(row));
  return { rows: approvals, next: rows.length < limit ? null : (approvals.at(-1)?.id ?? null) };
}

/** Counts the approvals before the id, and stops after `atMost`, which is at least 1. */
export function* countApprovals(
  dialect: Dialect,
  query: ApprovalQuery,
  beforeId: string,
  atMost: number,
): Procedure<CountStep<string>> {
  const limit = Math.min(atMost, CHUNK_ROWS);
  const [row] = yield sql`SELECT count(*) AS n, min(id) AS last FROM
    (${selectFirst(dialect, raw('id'), query, beforeId, limit)}) AS counted`;
  const count = numberIn(row, 'n');
  return { count, next: count < limit ? null : String(row?.['last']) };
}

/**
 * The first of the list, merged from a read for each status. WHY not a condition with OR: each read follows an index in
 * the order of the list, so that a step neither sorts nor reads all that match.
 */
function selectFirst(
  dialect: Dialect,
  columns: Statement,
  query: ApprovalQuery,
  beforeId: string,
  limit: number,
): Statement {
  const { agentId, agentName, status, now } = query;
  const ofAgent = [
    ...(agentId === null ? [] : [sql`agent_id = ${agentId}`]),
    ...(agentName === null ? [] : [sql`agent_name = ${agentName}`]),
  ];
  const select = (...conditions: readonly Statement[]): Statement =>
    sql`SELECT ${columns} FROM approvals WHERE ${and(sql`id < ${beforeId}`, ...ofAgent, ...conditions)}`;
  const statuses = status === null ? APPROVAL_STATUSES.map(hasStored) : hasStatus(status, now);
  // All approvals follow the primary key.
  const isWhole = status === null && ofAgent.length === 0;
  return dialect.merge(isWhole ? [select()] : statuses.map((each) => select(each)), 'id DESC', limit);
}

const hasStored = (status: ApprovalStatus): Statement => raw(`status = '${status}'`);

/** A request that timed out is listed as such before an entry records it. */
function hasStatus(status: ApprovalStatus, now: number): Statement[] {
  const stored = hasStored(status);
  if (status === 'pending') return [sql`${stored} AND answer_by > ${now}`];
  if (status === 'timed_out') return [stored, sql`${hasStored('pending')} AND answer_by <= ${now}`];
  return [stored];
}

export interface FoundApproval {
  readonly id: ApprovalId;
  readonly path: CredentialPath;
}

export function* findTimedOut(now: number, limit: number): Procedure<FoundApproval[]> {
  const rows = yield sql`SELECT id, path FROM approvals
    WHERE status = 'pending' AND answer_by <= ${now} ORDER BY id LIMIT ${limit}`;
  return rows.map(toFound);
}

/** A step through requests that wait, and grants that may still be used, after the id. It passes over spent grants. */
export function* findLiveApprovals(
  dialect: Dialect,
  now: number,
  afterId: string,
  limit: number,
): Procedure<ListStep<FoundApproval, string>> {
  const rows: FoundApproval[] = [];
  const next = yield* scanUntilDeadline(
    afterId,
    function* (after) {
      const select = (status: ApprovalStatus): Statement =>
        sql`SELECT id, path, status, grant_ends_at FROM approvals WHERE ${hasStored(status)} AND id > ${after}`;
      const found = yield dialect.merge([select('pending'), select('approved')], 'id', LIVE_CHUNK_ROWS);
      for (const row of found) {
        if (row['status'] === 'approved' && numberIn(row, 'grant_ends_at') <= now) continue;
        rows.push(toFound(row));
        if (rows.length === limit) return String(row['id']);
      }
      return found.length < LIVE_CHUNK_ROWS ? null : String(found.at(-1)?.['id']);
    },
    () => rows.length === limit,
  );
  return { rows, next };
}

export function* findAnswered(dialect: Dialect, ids: readonly ApprovalId[]): Procedure<ApprovalId[]> {
  const rows = yield sql`SELECT id FROM approvals WHERE status <> 'pending' AND ${dialect.isOneOf('id', ids)}`;
  return rows.map((row) => String(row['id']) as ApprovalId);
}

/** The approval and the path of its credential; null if it does not exist. */
export function* findApproval(id: ApprovalId): Procedure<FoundApproval | null> {
  const [row] = yield sql`SELECT id, path FROM approvals WHERE id = ${id}`;
  return row === undefined ? null : toFound(row);
}

function toFound(row: Row): FoundApproval {
  return { id: String(row['id']) as ApprovalId, path: String(row['path']) as CredentialPath };
}

/** The encrypted request; null if it was removed. */
export function* readApprovalRequest(id: ApprovalId): Procedure<Uint8Array | null> {
  const [row] = yield sql`SELECT sealed FROM approval_requests WHERE id = ${id}`;
  return row?.['sealed'] instanceof Uint8Array ? row['sealed'] : null;
}
