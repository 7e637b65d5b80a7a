/** Rows of the route table: approvals. SOURCE: docs/approvals.md. */
import { Type } from 'typebox';
import { Id } from '../../api/fields.ts';
import { ApprovalsQuery, ApproveRequest, DenyRequest } from '../../api/requests.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { Approval } from '../../api/responses.ts';
import { parseActorName } from '../../core/names.ts';
import { ListedApproval, parseApprovalId, parseNonce, toApprovalReply } from '../../vault/approvals/approval.ts';
import { answer, listApprovals, readApproval, withdraw } from '../../vault/approvals/approval-answers.ts';
import { parsePurpose } from '../../vault/use/upstream-url.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Route, route } from '../route.ts';

export const approvalRoutes: readonly Route[] = [
  route({
    id: 'listApprovals',
    method: 'GET',
    path: '/api/v1/approvals',
    summary: 'List requests for approval, newest first, including those of the last week. An agent sees its own.',
    permission: 'approval.list',
    query: ApprovalsQuery,
    data: Type.Array(replySchema(ListedApproval)),
    meta: 'paged',
    async handle({ vault, context, query, listSignal }) {
      const agentName = query.agent === undefined ? null : parseActorName(query.agent, 'agent');
      const filter = { agentName, status: query.status ?? null };
      const { now, ...listing } = await listApprovals(vault, context, filter, toOptionalPage(query), listSignal());
      return streamList(listing, toApprovalReply(now));
    },
  }),
  route({
    id: 'readApproval',
    method: 'GET',
    path: '/api/v1/approvals/{approval_id}',
    summary: 'Read what is to be approved, with the exact request.',
    permission: 'approval.read',
    params: { approval_id: Id },
    data: Approval,
    async handle({ vault, context, params }) {
      const { approval, request, now } = await readApproval(vault, context, parseApprovalId(params.approval_id));
      return { data: { ...toApprovalReply(now)(approval), request } };
    },
  }),
  route({
    id: 'approve',
    method: 'POST',
    path: '/api/v1/approvals/{approval_id}/approve',
    summary: 'Approve a request. It passes once as many operators have approved it as its policies demand.',
    params: { approval_id: Id },
    permission: 'approval.approve',
    body: ApproveRequest,
    data: replySchema(ListedApproval),
    async handle({ vault, context, params, body: { nonce } }) {
      const given = { isApproved: true, nonce: parseNonce(nonce), reason: null };
      const { approval, now } = await answer(vault, context, parseApprovalId(params.approval_id), given);
      return { data: toApprovalReply(now)(approval) };
    },
  }),
  route({
    id: 'deny',
    method: 'POST',
    path: '/api/v1/approvals/{approval_id}/deny',
    summary: 'Deny a request. One denial is enough.',
    params: { approval_id: Id },
    permission: 'approval.deny',
    body: DenyRequest,
    data: replySchema(ListedApproval),
    async handle({ vault, context, params, body: { nonce, reason } }) {
      const given = {
        isApproved: false,
        nonce: parseNonce(nonce),
        reason: reason === undefined ? null : parsePurpose(reason, 'reason'),
      };
      const { approval, now } = await answer(vault, context, parseApprovalId(params.approval_id), given);
      return { data: toApprovalReply(now)(approval) };
    },
  }),
  route({
    id: 'withdrawApproval',
    method: 'DELETE',
    path: '/api/v1/approvals/{approval_id}',
    summary: 'Withdraw a request for approval, or end what an approval still allows. An agent withdraws its own.',
    permission: 'approval.withdraw',
    params: { approval_id: Id },
    async handle({ vault, context, params }) {
      await withdraw(vault, context, parseApprovalId(params.approval_id));
      return null;
    },
  }),
];
