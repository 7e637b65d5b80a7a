/** Rows of the route table: approvals. SOURCE: docs/approvals.md. */
import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { Approval } from '../../api/responses.ts';
import { toOptionalPage } from '../../core/page.ts';
import {
  ApprovalsQuery,
  ApproveRequest,
  DenyRequest,
  ListedApproval,
  toApprovalReply,
} from '../../vault/approvals/approval.ts';
import { answer, listApprovals, readApproval, withdraw } from '../../vault/approvals/approval-answers.ts';
import { streamList } from '../lists.ts';
import { type Route, route } from '../route.ts';

const params = { id: ListedApproval.fields.id };

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
      const { now, ...listing } = await listApprovals(vault, context, query, toOptionalPage(query), listSignal());
      return streamList(listing, toApprovalReply(now));
    },
  }),
  route({
    id: 'readApproval',
    method: 'GET',
    path: '/api/v1/approvals/{approval_id}',
    summary: 'Read what is to be approved, with the exact request.',
    permission: 'approval.read',
    params,
    data: Approval,
    async handle({ vault, context, params }) {
      const { approval, request, now } = await readApproval(vault, context, params.id);
      return { data: { ...toApprovalReply(now)(approval), request } };
    },
  }),
  route({
    id: 'approve',
    method: 'POST',
    path: '/api/v1/approvals/{approval_id}/approve',
    summary: 'Approve a request. It passes once as many operators have approved it as its policies demand.',
    params,
    permission: 'approval.approve',
    body: ApproveRequest,
    data: replySchema(ListedApproval),
    async handle({ vault, context, params, body: { nonce } }) {
      const given = { isApproved: true, nonce, reason: null };
      const { approval, now } = await answer(vault, context, params.id, given);
      return { data: toApprovalReply(now)(approval) };
    },
  }),
  route({
    id: 'deny',
    method: 'POST',
    path: '/api/v1/approvals/{approval_id}/deny',
    summary: 'Deny a request. One denial is enough.',
    params,
    permission: 'approval.deny',
    body: DenyRequest,
    data: replySchema(ListedApproval),
    async handle({ vault, context, params, body }) {
      const { approval, now } = await answer(vault, context, params.id, { isApproved: false, ...body });
      return { data: toApprovalReply(now)(approval) };
    },
  }),
  route({
    id: 'withdrawApproval',
    method: 'DELETE',
    path: '/api/v1/approvals/{approval_id}',
    summary: 'Withdraw a request for approval, or end what an approval still allows. An agent withdraws its own.',
    permission: 'approval.withdraw',
    params,
    async handle({ vault, context, params }) {
      await withdraw(vault, context, params.id);
      return null;
    },
  }),
];
