/** Calls on approvals. SOURCE: docs/approvals.md. */
import { type ApiClient, type CallOptions, type ListAllOptions, toSegment } from './api-client.ts';
import { type Decoder, listOf, object } from './decoders.ts';
import type { Approval, ApprovalsFilter, ListedApproval, Page } from './types.ts';

const APPROVALS = '/api/v1/approvals';
const addressOf = (approvalId: string): string => `${APPROVALS}/${toSegment(approvalId, 'approval_id')}`;

const listed = {
  approval_id: 'text',
  nonce: 'text',
  status: 'text',
  agent_name: 'text',
  action: 'text',
  path: 'text',
  policy_names: 'list of text',
  covers: 'text',
  each: 'text',
  uses: 'integer or null',
  seconds: 'integer',
  for_session: 'boolean',
  quorum: 'integer',
  approvals: listOf(object<ListedApproval['approvals'][number]>({ operator: 'text', at: 'text' })),
  method: 'text or null',
  host: 'text or null',
  target_path: 'text or null',
  purpose: 'text or null',
  requested_at: 'text',
  expires_at: 'text',
  answered_at: 'text or null',
  answered_by: 'text or null',
  reason: 'text or null',
  uses_left: 'integer or null',
  grant_ends_at: 'text or null',
} as const;
const decodeListed = object<ListedApproval>(listed);
type ShownRequest = NonNullable<Approval['request']>;
const decodeShown = object<ShownRequest>({
  method: 'text',
  url: 'text',
  content_type: 'text or null',
  body: 'text',
  body_encoding: 'text',
  body_bytes: 'integer',
  body_sha256: 'text',
  truncated: 'boolean',
  headers: listOf(object<ShownRequest['headers'][number]>({ name: 'text', value: 'text' })),
  opens_websocket: 'boolean',
});
const decodeRequest: Decoder<Approval['request']> = (body) => (body === null ? null : decodeShown(body));
const decodeApproval = object<Approval>({ ...listed, request: decodeRequest });

export class Approvals {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Newest first. */
  list(filter: ApprovalsFilter = {}, options: CallOptions = {}): Promise<Page<ListedApproval>> {
    return this.#api.page(APPROVALS, filter, decodeListed, options);
  }

  listAll(filter: Omit<ApprovalsFilter, 'limit' | 'offset'> = {}, options: ListAllOptions = {}) {
    return this.#api.pages(APPROVALS, filter, decodeListed, options);
  }

  /** With the exact request. */
  async read(approvalId: string, options: CallOptions = {}): Promise<Approval> {
    return this.#api.read(addressOf(approvalId), {}, decodeApproval, options);
  }

  /** `nonce` is that of the approval as it was read. */
  async approve(approvalId: string, nonce: string, { signal }: CallOptions = {}): Promise<ListedApproval> {
    const path = `${addressOf(approvalId)}/approve`;
    const spec = { method: 'POST', path, body: { nonce }, retry: 'if-not-applied', signal } as const;
    return (await this.#api.ask(spec, decodeListed)).data;
  }

  /** One denial is enough. */
  async deny(
    approvalId: string,
    answer: { nonce: string; reason?: string },
    { signal }: CallOptions = {},
  ): Promise<ListedApproval> {
    const path = `${addressOf(approvalId)}/deny`;
    const spec = { method: 'POST', path, body: answer, retry: 'if-not-applied', signal } as const;
    return (await this.#api.ask(spec, decodeListed)).data;
  }

  /** Also ends what an approval still allows. */
  async withdraw(approvalId: string, options: CallOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(approvalId), options, 'id');
  }
}
