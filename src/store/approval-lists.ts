/** Lists approvals, newest first, and finds those that the service has to settle. */
import type { Approval, ApprovalId } from '../core/approval.ts';
import type { CredentialPath } from '../core/path.ts';
import { APPROVALS } from './approval-tables.ts';
import { numberIn } from './dialect.ts';
import type { ApprovalQuery, CountStep, ListStep } from './queries.ts';

import { and, type Procedure, type Statement, sql } from './statement.ts';
import type { Authenticated } from './store.ts';

/** Counted in one step. */
const CHUNK_ROWS = 1000;

export function* listApprovals(
  query: ApprovalQuery,
  beforeId: string,
  limit: number,
): Procedure<ListStep<Authenticated<Approval>, string>> {
  const rows = yield sql`SELECT ${APPROVALS.list} FROM approvals
    WHERE ${matching(query, beforeId)} ORDER BY id DESC LIMIT ${limit}`;
  const approvals = rows.map((row) => APPROVALS.decode(row));
  return { rows: approvals, next: rows.length < limit ? null : (approvals.at(-1)?.id ?? null) };
}

export function* countApprovals(query: ApprovalQuery, beforeId: string, atMost: number): Procedure<CountStep<string>> {
  const limit = Math.min(atMost, CHUNK_ROWS);
  const [row] = yield sql`SELECT count(*) AS n, min(id) AS last FROM
    (SELECT id FROM approvals WHERE ${matching(query, beforeId)} ORDER BY id DESC LIMIT ${limit}) AS counted`;
  const count = numberIn(row, 'n');
  return { count, next: count < limit ? null : String(row?.['last']) };
}

function matching({ agentId, agentName, status, now }: ApprovalQuery, beforeId: string): Statement {
  return and(
    sql`id < ${beforeId}`,
    ...(agentId === null ? [] : [sql`agent_id = ${agentId}`]),
    ...(agentName === null ? [] : [sql`agent_name = ${agentName}`]),
    ...(status === null ? [] : [hasStatus(status, now)]),
  );
}

/** A request that timed out is listed as such before an entry records it. */
function hasStatus(status: Approval['status'], now: number): Statement {
  if (status === 'pending') return sql`status = 'pending' AND answer_by > ${now}`;
  if (status === 'timed_out') return sql`(status = 'timed_out' OR (status = 'pending' AND answer_by <= ${now}))`;
  return sql`status = ${status}`;
}

export interface FoundApproval {
  readonly id: ApprovalId;
  readonly path: CredentialPath;
}

/** Requests whose time has ended without an answer. */
export function findTimedOut(now: number, limit: number): Procedure<FoundApproval[]> {
  return find(sql`status = 'pending' AND answer_by <= ${now}`, '', limit);
}

/** Requests that wait, and grants that may still be used, after the id. */
export function findLiveApprovals(now: number, afterId: string, limit: number): Procedure<FoundApproval[]> {
  return find(sql`(status = 'pending' OR (status = 'approved' AND grant_ends_at > ${now}))`, afterId, limit);
}

function* find(where: Statement, afterId: string, limit: number): Procedure<FoundApproval[]> {
  const rows = yield sql`SELECT id, path FROM approvals WHERE ${where} AND id > ${afterId} ORDER BY id LIMIT ${limit}`;
  return rows.map((row) => ({ id: String(row['id']) as ApprovalId, path: String(row['path']) as CredentialPath }));
}

/** Those of the approvals, at least one, that do not wait any more. */
export function* findAnswered(ids: readonly ApprovalId[]): Procedure<ApprovalId[]> {
  const wanted: Statement = { parts: ['', ...ids.slice(1).map(() => ', '), ''], values: ids };
  const rows = yield sql`SELECT id FROM approvals WHERE status <> 'pending' AND id IN (${wanted})`;
  return rows.map((row) => String(row['id']) as ApprovalId);
}

export function* findApproval(id: ApprovalId): Procedure<FoundApproval | null> {
  const [row] = yield sql`SELECT id, path FROM approvals WHERE id = ${id}`;
  return row === undefined ? null : { id, path: String(row['path']) as CredentialPath };
}

/** What was requested, sealed; null if it was removed. */
export function* readApprovalRequest(id: ApprovalId): Procedure<Uint8Array | null> {
  const [row] = yield sql`SELECT sealed FROM approval_requests WHERE id = ${id}`;
  return row?.['sealed'] instanceof Uint8Array ? row['sealed'] : null;
}
