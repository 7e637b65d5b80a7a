/** Rows of the route table: the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log". */
import { Type } from 'typebox';
import { AuditEntry, Verification, VerificationProgress } from '../../api/audit.ts';
import { Health, Rollback } from '../../api/responses.ts';
import type {
  VerificationProgress as ProgressResponse,
  Verification as VerificationResponse,
} from '../../api/types.ts';
import { parseTimestamp } from '../../core/filter-timestamp.ts';
import { authorize } from '../../core/operation.ts';
import { toPage } from '../../core/page.ts';
import { integer, MAX_EXACT } from '../../engine/kinds.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { authorizeVerification, exportEntries, listEntries, readProgress } from '../../vault/audit/audit.ts';
import { AuditQuery, headWords, VerifyQuery } from '../../vault/audit/audit-entry.ts';
import { Checkpoint, ConsistencyProof, ConsistencyQuery, EntryProof } from '../../vault/audit/proofs.ts';
import { proveConsistency, proveEntry, readCheckpoint } from '../../vault/audit/receipts.ts';
import type { StateCheck } from '../../vault/audit/verification/state-scan.ts';
import type { VerificationResult, VerificationStatus } from '../../vault/audit/verification/verifier.ts';
import { streamList, toNdjson } from '../lists.ts';
import { type Route, route, shapedRoute } from '../route.ts';

const HEAD_WORDS = /^\d+ [A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+ \d+ [A-Za-z0-9+/=-]+ [A-Za-z0-9+/=.-]+$/;

export const auditRoutes: readonly Route[] = [
  route({
    id: 'listAuditEntries',
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'List audit entries, newest first.',
    permission: 'audit.list',
    query: AuditQuery,
    data: Type.Array(AuditEntry),
    meta: 'always',
    showsLog: true,
    async handle({ vault, context, query, listSignal }) {
      const since = query.since === null ? null : toTimestamp(parseTimestamp(query.since, 'since', 'up'));
      const until = query.until === null ? null : toTimestamp(parseTimestamp(query.until, 'until', 'down'));
      const listing = await listEntries(vault, context, { ...query, since, until }, toPage(query), listSignal());
      // The export contains the state of a row that an entry records.
      return streamList(listing, ({ subject: _, state: __, ...entry }) => entry);
    },
  }),
  route({
    id: 'verifyAuditLog',
    method: 'GET',
    path: '/api/v1/audit/verify',
    summary: 'Verify the whole chain: read every entry and compute every MAC again.',
    permission: 'audit.verify',
    query: VerifyQuery,
    data: Verification,
    showsLog: true,
    async handle({ vault, context, query, disconnectSignal }) {
      const verify = await authorizeVerification(vault, context);
      const signal = disconnectSignal();
      const found = await verify(signal);
      const withValues = query.values === 'true';
      const isStateWanted = withValues || query.state === 'true';
      const state = isStateWanted ? await vault.verifier.state.check(signal, withValues) : null;
      return { data: toVerificationResponse(found, state) };
    },
  }),
  route({
    id: 'readVerificationProgress',
    method: 'GET',
    path: '/api/v1/audit/verify/progress',
    summary: 'Read the progress of the running verification.',
    permission: 'audit.verify',
    data: VerificationProgress,
    showsLog: true,
    async handle({ vault, context }) {
      return { data: toProgressResponse(await readProgress(vault, context), vault.verifier.state.checked) };
    },
  }),
  shapedRoute({
    id: 'readCheckpoint',
    method: 'GET',
    path: '/api/v1/audit/checkpoint',
    summary: 'Read the newest signed checkpoint of the audit log.',
    permission: 'audit.checkpoint',
    reply: Checkpoint,
    handle: ({ vault, context }) => readCheckpoint(vault, context),
  }),
  shapedRoute({
    id: 'proveAuditEntry',
    method: 'GET',
    path: '/api/v1/audit/entries/{seq}/proof',
    summary:
      'Prove that an entry is in the audit log: a receipt that a third party verifies with the public key alone.',
    permission: 'audit.proof',
    params: { seq: integer({ min: 1, max: MAX_EXACT }) },
    reply: EntryProof,
    handle: ({ vault, context, params }) => proveEntry(vault, context, params.seq),
  }),
  shapedRoute({
    id: 'proveConsistency',
    method: 'GET',
    path: '/api/v1/audit/consistency',
    summary: 'Prove that the audit log at one size extends the log at a smaller one.',
    permission: 'audit.proof',
    query: ConsistencyQuery,
    reply: ConsistencyProof,
    handle: ({ vault, context, query }) => proveConsistency(vault, context, query.from, query.to),
  }),
  route({
    id: 'readRollback',
    method: 'GET',
    path: '/api/v1/audit/rollback',
    summary: 'The loss of the audit log, or of the evidence that would show it; null if no loss is known.',
    permission: 'audit.verify',
    data: Rollback,
    showsLog: true,
    async handle({ vault, context }) {
      await vault.ledger.read(authorize(context, 'audit.verify'));
      return { data: { loss: vault.access.loss() } };
    },
  }),
  route({
    id: 'acceptRollback',
    method: 'POST',
    path: '/api/v1/audit/rollback',
    summary: 'Accept the loss of audit entries: the vault is served again, as the database is now.',
    permission: 'audit.accept_rollback',
    data: Health,
    showsLog: true,
    async handle({ vault, context }) {
      await vault.access.acceptRollback(context);
      return { data: { status: 'ok' } };
    },
  }),
  route({
    id: 'exportAuditLog',
    method: 'GET',
    path: '/api/v1/audit/export',
    summary: 'Every entry as newline-delimited JSON, oldest first.',
    permission: 'audit.export',
    content: { mediaType: 'application/x-ndjson', description: 'One audit entry per line.' },
    showsLog: true,
    async handle({ vault, context, listSignal }) {
      const { head, rows } = await exportEntries(vault, context, listSignal());
      const words = head === null ? '' : headWords(head);
      // A head record that was tampered with may contain any text.
      const headers = HEAD_WORDS.test(words) ? { 'leasehold-audit-head': words } : {};
      return { stream: toNdjson(rows), type: 'application/x-ndjson', headers };
    },
  }),
];

function toVerificationResponse(verification: VerificationResult, check: StateCheck | null): VerificationResponse {
  const state = check === null ? {} : { state: toStateResponse(check) };
  if (verification.isValid) {
    const { entries, firstEntry, lastEntry } = verification;
    return { valid: true, entries, first_entry: firstEntry, last_entry: lastEntry, ...state };
  }
  const { breakAtEntry, breakAtTimestamp, reason } = verification;
  return {
    valid: false,
    break_at_entry: breakAtEntry,
    break_at_timestamp: breakAtTimestamp,
    message: `The audit chain is broken at entry ${breakAtEntry}: ${reason}.`,
    ...state,
  };
}

function toStateResponse({ checked, problemCount, problems }: StateCheck): NonNullable<VerificationResponse['state']> {
  // An altered row may hold any text.
  const shown = problems.map(({ subject, problem }) => ({ subject: subject.toWellFormed().slice(0, 600), problem }));
  return { checked, problem_count: problemCount, problems: shown };
}

/** `progress` is null if no verification runs. */
const toProgressResponse = (progress: VerificationStatus | null, rowsChecked: number): ProgressResponse => ({
  running: progress !== null || rowsChecked > 0,
  entries_checked: progress?.entriesChecked ?? null,
  entries_total: progress?.entriesTotal ?? null,
  ...(rowsChecked === 0 ? {} : { rows_checked: rowsChecked }),
  started_at: progress === null ? null : toTimestamp(progress.startedAt),
});
