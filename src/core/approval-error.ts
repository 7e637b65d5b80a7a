/** What an agent is told of an approval that was denied, timed out or was withdrawn. SOURCE: docs/approvals.md. */
import { type Approval, type ApprovalStatus, describeTimeout, ENDED_NOTICE_MS } from './approval.ts';
import type { ErrorInfo } from './errors.ts';

export type ApprovalError = ErrorInfo & { readonly reason: string };

/** Null if it ended so long ago that the request asks again. */
export function approvalError(approval: Approval, status: ApprovalStatus, now: number): ApprovalError | null {
  const { answerBy, endedAt, endedBy, reason, approvers, terms } = approval;
  const why = reason === null ? '' : `: ${reason}`;
  if (status === 'denied' && now < answerBy) {
    return {
      code: 'APPROVAL_DENIED',
      reason: `denied by ${endedBy}`,
      message: `The approval was denied by ${endedBy}${why}. Do not send the request again.`,
    };
  }
  if (status === 'timed_out' && now < answerBy + ENDED_NOTICE_MS) {
    return {
      code: 'APPROVAL_TIMED_OUT',
      reason: describeTimeout(approval),
      message:
        approvers.length === 0
          ? 'The approval timed out: no operator answered in the time that the policy gives. This is not a refusal; ask again later.'
          : `The approval timed out: ${approvers.length} of the ${terms.quorum} operators that it needs approved in the time that the policy gives. This is not a refusal; ask again later.`,
    };
  }
  if (status === 'withdrawn' && now < (endedAt ?? 0) + ENDED_NOTICE_MS) {
    return {
      code: 'APPROVAL_WITHDRAWN',
      reason: `withdrawn by ${endedBy}`,
      message: `The request for approval was withdrawn by ${endedBy}${why}. This is not a refusal; a later request asks again.`,
    };
  }
  return null;
}
