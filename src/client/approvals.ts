/** Calls on approvals. SOURCE: docs/approvals.md. */
import { type ApiClient, type CallOptions, type ListAllOptions, toSegment } from './api-client.ts';
import type { Approval, ApprovalsFilter, ListedApproval, Page } from './types.ts';

const APPROVALS = '/api/v1/approvals';
const addressOf = (approvalId: string): string => `${APPROVALS}/${toSegment(approvalId, 'approval_id')}`;

export class Approvals {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Lists approvals, newest first. */
  list(filter: ApprovalsFilter = {}, options: CallOptions = {}): Promise<Page<ListedApproval>> {
    return this.#api.page<ListedApproval>(APPROVALS, filter, options);
  }

  listAll(filter: Omit<ApprovalsFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.#api.pages<ListedApproval>(APPROVALS, filter, options);
  }

  async read(approvalId: string, options: CallOptions = {}): Promise<Approval> {
    return this.#api.read<Approval>(addressOf(approvalId), {}, options);
  }

  /** `nonce` must come from the approval as the operator read it. */
  async approve(approvalId: string, nonce: string, { signal }: CallOptions = {}): Promise<ListedApproval> {
    const path = `${addressOf(approvalId)}/approve`;
    const spec = { method: 'POST', path, body: { nonce }, retry: 'if-not-applied', signal } as const;
    return (await this.#api.ask<ListedApproval>(spec)).data;
  }

  /** Denies the request. One denial is sufficient. */
  async deny(
    approvalId: string,
    answer: { nonce: string; reason?: string },
    { signal }: CallOptions = {},
  ): Promise<ListedApproval> {
    const path = `${addressOf(approvalId)}/deny`;
    const spec = { method: 'POST', path, body: answer, retry: 'if-not-applied', signal } as const;
    return (await this.#api.ask<ListedApproval>(spec)).data;
  }

  /** Withdraws the approval, and with it all access that it still allows. */
  async withdraw(approvalId: string, options: CallOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(approvalId), options, 'id');
  }
}
