/**
 * What a webhook says about an approval. INVARIANT: nothing that answers it, and nothing of the request but its method,
 * host and path: no query, no body, no words of the agent, no nonce. SOURCE: docs/approvals.md, "Webhook".
 */
import { type Approval, type ApprovalId, describeScope, describeTimeout } from '../core/approval.ts';
import type { ApprovalEvent } from '../vault/approval-events.ts';

export interface ApprovalMessage {
  readonly approvalId: ApprovalId;
  /** Equal for repetitions, also from several nodes. */
  readonly id: string;
  readonly body: string;
  /** From then on it is of no use; in ms since 1970. */
  readonly expiresAt: number;
}

const toTimestamp = (at: number): string => new Date(at).toISOString();
/** How long an outcome is sent again. */
const OUTCOME_MS = 3_600_000;

/** `consoleUrl`: null if browsers cannot reach the console. */
export function toMessage({ kind, approval }: ApprovalEvent, consoleUrl: string | null, now: number): ApprovalMessage {
  const { id, agentName, action, path, terms, approvers, requestedAt, answerBy, endedAt, endedBy } = approval;
  const url = consoleUrl === null ? null : `${consoleUrl}/console/approvals/${id}`;
  const body = {
    type: `approval.${kind}`,
    timestamp: toTimestamp(now),
    text: toSentence(kind, approval, url),
    data: {
      approval_id: id,
      status: approval.status,
      agent_name: agentName,
      action,
      path,
      policy_names: terms.policyNames,
      covers: describeScope(approval),
      quorum: terms.quorum,
      approved_by: approvers.map(({ operator }) => operator),
      requested_at: toTimestamp(requestedAt),
      expires_at: toTimestamp(answerBy),
      answered_at: endedAt === null ? null : toTimestamp(endedAt),
      answered_by: endedBy,
      url,
    },
  };
  const expiresAt = kind === 'requested' ? answerBy : now + OUTCOME_MS;
  return { approvalId: id, id: `approval-${id}-${kind}`, body: JSON.stringify(body), expiresAt };
}

/** WHY without the path of the URL: the agent chose it, and chat systems turn some characters into links. */
function toSentence(kind: ApprovalEvent['kind'], approval: Approval, url: string | null): string {
  const { id, agentName, action, path, method, host, answerBy, endedBy } = approval;
  const agent = agentName.includes(':') ? agentName : `agent:${agentName}`;
  const where = host === null ? '' : ` for a ${method} request to ${host}`;
  const at = url ?? `leasehold approve ${id}`;
  if (kind === 'requested') {
    return `${agent} asks to ${action} ${path}${where}; an operator can answer until ${toTimestamp(answerBy)}: ${at}`;
  }
  const what = `The request of ${agent} to ${action} ${path}${where}`;
  if (kind === 'timed_out') return `${what} timed out, because ${describeTimeout(approval)}: ${at}`;
  return `${what} was ${kind}${endedBy === null ? '' : ` by ${endedBy}`}: ${at}`;
}
