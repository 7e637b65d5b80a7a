/** The tables of approvals. */
import type { Approval, ApprovalRequest } from '../core/approval.ts';
import type { Authenticated } from './store.ts';
import { Table } from './table.ts';

/** What people are asked to allow, and what they answered. */
export const APPROVALS = new Table<Authenticated<Approval>>('approvals', ['id'], {
  id: 'text',
  nonce: 'text',
  agentId: 'text',
  agentName: 'text',
  tokenHash: 'text',
  action: 'text',
  path: 'text',
  key: 'text',
  basis: 'text',
  terms: 'json',
  method: 'text',
  host: 'text',
  targetPath: 'text',
  purpose: 'text',
  status: 'text',
  requestedAt: 'number',
  answerBy: 'number',
  approvers: 'json',
  endedBy: 'text',
  endedAt: 'number',
  reason: 'text',
  usesLeft: 'number',
  grantEndsAt: 'number',
  expiresAt: 'number',
  mac: 'text',
});

/** What each approval is about, sealed. */
export const APPROVAL_REQUESTS = new Table<ApprovalRequest>('approval_requests', ['id'], {
  id: 'text',
  expiresAt: 'number',
  sealed: 'bytes',
});
