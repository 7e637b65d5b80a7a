/** The reply of a decision in which no policy demands an approval. */
import { type ApprovalPending, isUndecided } from '../../src/vault/approvals/approval-requests.ts';

export function decided<R extends object>(reply: R | ApprovalPending): R {
  if (isUndecided(reply)) throw new Error(`the decision waits for an approval: ${reply.approval}`);
  return reply;
}
