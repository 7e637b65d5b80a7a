/** The reply of a decision in which no policy demands an approval. */
import { isUndecided, type Undecided } from '../../src/vault/approvals/approval-requests.ts';

export function decided<R extends object>(reply: R | Undecided): R {
  if (isUndecided(reply)) throw new Error(`the decision waits for an approval: ${reply.approval}`);
  return reply;
}
