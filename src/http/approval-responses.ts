/** Writes approvals as the interface has them. */
import type * as api from '../api/types.ts';
import { type Approval, approvalStatus, describeScope } from '../core/approval.ts';
import { toTimestamp } from './serialize.ts';

const toNullableTimestamp = (time: number | null): string | null => (time === null ? null : toTimestamp(time));

/** The status is that of the time `now`. */
export const toListedApprovalResponse =
  (now: number) =>
  (approval: Approval): api.ListedApproval => ({
    approval_id: approval.id,
    nonce: approval.nonce,
    status: approvalStatus(approval, now),
    agent_name: approval.agentName,
    action: approval.action,
    path: approval.path,
    policy_names: [...approval.terms.policyNames],
    covers: describeScope(approval),
    each: approval.terms.each,
    uses: approval.terms.uses,
    seconds: approval.terms.seconds,
    for_session: approval.terms.isForSession,
    quorum: approval.terms.quorum,
    approvals: approval.approvers.map(({ operator, at }) => ({ operator, at: toTimestamp(at) })),
    method: approval.method,
    host: approval.host,
    target_path: approval.targetPath,
    purpose: approval.purpose,
    requested_at: toTimestamp(approval.requestedAt),
    expires_at: toTimestamp(approval.answerBy),
    answered_at: toNullableTimestamp(approval.endedAt),
    answered_by: approval.endedBy,
    reason: approval.reason,
    uses_left: approval.usesLeft,
    grant_ends_at: toNullableTimestamp(approval.grantEndsAt),
  });
