/** Rows of the route table: the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log". */
import { type Static, Type } from 'typebox';
import {
  AuditEntry,
  AuditQuery,
  ConsistencyQuery,
  MAX_FILTER_LENGTH,
  Verification,
  VerificationProgress,
  VerifyQuery,
} from '../../api/audit.ts';
import { PositiveInteger } from '../../api/fields.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { Health, Rollback } from '../../api/responses.ts';
import { parseTimestamp } from '../../core/filter-timestamp.ts';
import { parseActorName } from '../../core/names.ts';
import { authorize } from '../../core/operation.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import {
  authorizeVerification,
  type EntryBounds,
  type EntryQuery,
  exportEntries,
  listEntries,
  readProgress,
} from '../../vault/audit/audit.ts';
import { headWords } from '../../vault/audit/audit-entry.ts';
import { Checkpoint, ConsistencyProof, EntryProof } from '../../vault/audit/proofs.ts';
import { proveConsistency, proveEntry, readCheckpoint } from '../../vault/audit/receipts.ts';
import { shapedRoute } from '../declared-routes.ts';
import { streamList, toNdjson, toPage } from '../lists.ts';
import { type Route, route } from '../route.ts';
import { toProgressResponse, toVerificationResponse } from '../serialize.ts';

const HEAD_WORDS = /^\d+ [A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+ \d+ [A-Za-z0-9+/=-]+ [A-Za-z0-9+/=.-]+$/;

function parseSeq(text: string | undefined): number {
  const seq = /^[1-9][0-9]{0,14}$/.test(text ?? '') ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(seq)) throw invalidRequest('seq', 'must be the number of an entry, 1 or more');
  return seq;
}

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
      const filter = { ...toAuditFilter(query), ...toEntryBounds(query), order: query.order ?? 'desc' };
      const listing = await listEntries(vault, context, filter, toPage(query), listSignal());
      // The export has what an entry records about a row.
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
    summary: 'Read the newest signed checkpoint of the log.',
    permission: 'audit.checkpoint',
    reply: Checkpoint,
    handle: ({ vault, context }) => readCheckpoint(vault, context),
  }),
  shapedRoute({
    id: 'proveAuditEntry',
    method: 'GET',
    path: '/api/v1/audit/entries/{seq}/proof',
    summary: 'Prove that an entry is in the log: a receipt that a third party verifies with the public key alone.',
    permission: 'audit.proof',
    params: { seq: PositiveInteger },
    reply: EntryProof,
    handle: ({ vault, context, params }) => proveEntry(vault, context, parseSeq(params['seq'])),
  }),
  route({
    id: 'proveConsistency',
    method: 'GET',
    path: '/api/v1/audit/consistency',
    summary: 'Prove that the log at one size extends the log at a smaller one.',
    permission: 'audit.proof',
    query: ConsistencyQuery,
    data: replySchema(ConsistencyProof),
    async handle({ vault, context, query }) {
      return { data: ConsistencyProof.toReply(await proveConsistency(vault, context, query.from, query.to ?? null)) };
    },
  }),
  route({
    id: 'readRollback',
    method: 'GET',
    path: '/api/v1/audit/rollback',
    summary: 'What the log has lost, or what would show it; null if nothing is known to be lost.',
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
    summary: 'Accept the loss of log entries: the vault is served again, as the database is now.',
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

type AuditFields = Static<typeof AuditQuery>;

/** @throws INVALID_REQUEST */
function toAuditFilter(query: AuditFields): Omit<EntryQuery, keyof EntryBounds | 'order'> {
  return {
    agentName: query.agent === undefined ? null : parseActorName(query.agent, 'agent'),
    resource: parseFilter(query.resource, 'resource'),
    action: parseFilter(query.action, 'action'),
    eventType: parseFilter(query.event_type, 'event_type'),
    result: parseFilter(query.result, 'result'),
  };
}

/** @throws INVALID_REQUEST */
function toEntryBounds({ since, until, after = 0, before }: AuditFields): EntryBounds {
  return {
    since: since === undefined ? null : toTimestamp(parseTimestamp(since, 'since', 'up')),
    until: until === undefined ? null : toTimestamp(parseTimestamp(until, 'until', 'down')),
    after,
    before: before ?? null,
  };
}

function parseFilter(text: string | undefined, field: string): string | null {
  if (text === undefined) return null;
  if (text.length < 1 || text.length > MAX_FILTER_LENGTH) {
    throw invalidRequest(field, `must be 1 to ${MAX_FILTER_LENGTH} characters`);
  }
  return text;
}
