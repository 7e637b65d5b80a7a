/** Rows of the route table: the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log". */
import { Type } from 'typebox';
import { AuditQuery, MAX_FILTER_LENGTH } from '../../api/requests.ts';
import { AuditEntry, Verification, VerificationProgress } from '../../api/responses.ts';
import { invalidRequest } from '../../core/errors.ts';
import { parseActorName } from '../../core/names.ts';
import { parseTimestamp } from '../../core/timestamp.ts';
import { exportEntries, listEntries } from '../../vault/audit.ts';
import { authorizeVerification, readProgress } from '../../vault/verification/authorize.ts';
import { toPage } from '../query.ts';
import { type Route, route } from '../route.ts';
import { toProgressResponse, toTimestamp, toVerificationResponse } from '../serialize.ts';
import { toNdjson } from '../streaming.ts';

const HEAD_WORDS = /^\d+ [A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+$/;

function parseFilter(text: string | undefined, field: string): string | null {
  if (text === undefined) return null;
  if (text.length < 1 || text.length > MAX_FILTER_LENGTH) {
    throw invalidRequest(field, `must be 1 to ${MAX_FILTER_LENGTH} characters`);
  }
  return text;
}

function parseTime(text: string | undefined, field: string, rounding: 'up' | 'down'): string | null {
  return text === undefined ? null : toTimestamp(parseTimestamp(text, field, rounding));
}

export const auditRoutes: readonly Route[] = [
  route({
    id: 'listAuditEntries',
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'List audit entries, newest first.',
    who: 'admin',
    adminEvent: 'audit.list',
    query: AuditQuery,
    data: Type.Array(AuditEntry),
    meta: 'always',
    async handle({ vault, context, query }) {
      const page = toPage(query);
      const filter = {
        agentName: query.agent === undefined ? null : parseActorName(query.agent, 'agent'),
        resource: parseFilter(query.resource, 'resource'),
        action: parseFilter(query.action, 'action'),
        eventType: parseFilter(query.event_type, 'event_type'),
        result: parseFilter(query.result, 'result'),
        since: parseTime(query.since, 'since', 'up'),
        until: parseTime(query.until, 'until', 'down'),
        order: query.order ?? 'desc',
      };
      const { entries, total } = await listEntries(vault, context, filter, page);
      return { data: entries, meta: { total, ...page } };
    },
  }),
  route({
    id: 'verifyAuditLog',
    method: 'GET',
    path: '/api/v1/audit/verify',
    summary: 'Verify the whole chain: read every entry and compute every MAC again.',
    who: 'admin',
    adminEvent: 'audit.verify',
    data: Verification,
    async handle({ vault, context, disconnectSignal }) {
      const verify = await authorizeVerification(vault, context);
      return { data: toVerificationResponse(await verify(disconnectSignal())) };
    },
  }),
  route({
    id: 'readVerificationProgress',
    method: 'GET',
    path: '/api/v1/audit/verify/progress',
    summary: 'Read the progress of the running verification.',
    who: 'admin',
    adminEvent: 'audit.verify',
    data: VerificationProgress,
    async handle({ vault, context }) {
      return { data: toProgressResponse(await readProgress(vault, context)) };
    },
  }),
  route({
    id: 'exportAuditLog',
    method: 'GET',
    path: '/api/v1/audit/export',
    summary: 'Every entry as newline-delimited JSON, oldest first.',
    who: 'admin',
    adminEvent: 'audit.export',
    data: null,
    content: { mediaType: 'application/x-ndjson', description: 'One audit entry per line.' },
    async handle({ vault, context }) {
      const { head, rows } = await exportEntries(vault, context);
      const words = head === null ? '' : `${head.seq} ${head.hmac} ${head.mac}`;
      // A head record that was tampered with may contain any text.
      const headers = HEAD_WORDS.test(words) ? { 'leasehold-audit-head': words } : {};
      return { stream: toNdjson(rows), type: 'application/x-ndjson', headers };
    },
  }),
];
