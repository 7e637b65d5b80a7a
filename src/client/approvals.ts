/**
 * Calls on approvals, and the rules for showing requests: which of them share one answer, and which can be approved.
 * SOURCE: docs/approvals.md.
 */
import { type CallOptions, Calls, type ListAllOptions, toSegment } from './api-client.ts';
import type { Approval, ApprovalsFilter, ListedApproval, Page } from './types.ts';

const APPROVALS = '/api/v1/approvals';
const addressOf = (approvalId: string): string => `${APPROVALS}/${toSegment(approvalId, 'approval_id')}`;

export class Approvals extends Calls {
  /** Lists approvals, newest first. */
  list(filter: ApprovalsFilter = {}, options: CallOptions = {}): Promise<Page<ListedApproval>> {
    return this.api.page(APPROVALS, filter, options);
  }

  listAll(filter: Omit<ApprovalsFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.api.pages<ListedApproval>(APPROVALS, filter, options);
  }

  async read(approvalId: string, options: CallOptions = {}): Promise<Approval> {
    return this.api.read(addressOf(approvalId), {}, options);
  }

  /** `nonce` must come from the approval as the operator read it. */
  async approve(approvalId: string, nonce: string, options: CallOptions = {}): Promise<ListedApproval> {
    return this.api.post(`${addressOf(approvalId)}/approve`, { nonce }, options, 'if-not-applied');
  }

  /** Denies the request. One denial is sufficient. */
  async deny(
    approvalId: string,
    answer: { nonce: string; reason?: string },
    options: CallOptions = {},
  ): Promise<ListedApproval> {
    return this.api.post(`${addressOf(approvalId)}/deny`, answer, options, 'if-not-applied');
  }

  /** Withdraws the approval, and with it all access that it still allows. */
  async withdraw(approvalId: string, options: CallOptions = {}): Promise<void> {
    return this.api.remove(addressOf(approvalId), options, 'id');
  }
}

/** An agent that repeats a call asks again within this time. */
const GROUP_MS = 2000;
/** WHY bounded: all requests of a group are shown before it is answered. */
const MAX_GROUP = 20;

/**
 * Requests of the same agent to the same endpoint, with the same terms, within 2 s of the first one. The oldest group
 * is first, and so is the oldest request of each. They may differ in query and body, so all of them must be shown.
 */
export function groupApprovals<A extends ListedApproval>(approvals: readonly A[]): (readonly [A, ...A[]])[] {
  const groups: [A, ...A[]][] = [];
  const open = new Map<string, [A, ...A[]]>();
  const timeOf = ({ requested_at }: A): number => Date.parse(requested_at);
  const inOrder = approvals.toSorted((a, b) => timeOf(a) - timeOf(b) || (a.approval_id < b.approval_id ? -1 : 1));
  for (const approval of inOrder) {
    const key = keyOf(approval);
    const group = open.get(key);
    if (group !== undefined && group.length < MAX_GROUP && timeOf(approval) - timeOf(group[0]) <= GROUP_MS) {
      group.push(approval);
      continue;
    }
    const started: [A, ...A[]] = [approval];
    open.set(key, started);
    groups.push(started);
  }
  return groups;
}

/** Whether an operator can see the whole request. A request that cannot be shown can be denied, but not approved. */
export function isReadable({ action, request }: Pick<Approval, 'action' | 'request'>): boolean {
  return action === 'retrieve' || request !== null;
}

/** WHY the terms: an answer to one of a group must not allow more than an answer to another. */
function keyOf(approval: ListedApproval): string {
  const { agent_name, action, path, method, host, target_path, covers, quorum, policy_names } = approval;
  const approvers = approval.approvals.map(({ operator }) => operator);
  return JSON.stringify([agent_name, action, path, method, host, target_path, covers, quorum, policy_names, approvers]);
}
