/**
 * The result for a model and its user when a call waits for an approval, or ends without one. A client that can open
 * links is asked to open the approval's page for its user; for other clients the result contains the link. Only an
 * operator who has signed in can answer there.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { LeaseholdError } from '../client/errors.ts';
import { UUID } from '../core/names.ts';

/** The outcomes by the code of the error. A given approval needs none, because the call returns its result. */
const OUTCOMES: ReadonlyMap<string, { readonly outcome: string; readonly is_refusal: boolean }> = new Map([
  ['APPROVAL_PENDING', { outcome: 'pending', is_refusal: false }],
  ['APPROVAL_DENIED', { outcome: 'denied', is_refusal: true }],
  ['APPROVAL_TIMED_OUT', { outcome: 'timed_out', is_refusal: false }],
  ['APPROVAL_WITHDRAWN', { outcome: 'withdrawn', is_refusal: false }],
  ['NO_APPROVER', { outcome: 'no_approver', is_refusal: false }],
]);

/** The abilities of the client, which each request or the connection declares, depending on the protocol revision. */
interface Declared {
  readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
}

const MAX_REMEMBERED = 1000;
const REQUEST =
  'A request of this agent waits until an operator approves it. Open the page to read the exact request and to approve or deny it; it asks for an operator’s sign-in.';

export class ApprovalResults {
  readonly #serverUrl: string | null;
  /** The approvals that the user was already asked to open, so that none is offered twice. */
  readonly #asked = new Set<string>();

  /** `serverUrl` is null if browsers cannot reach it. */
  constructor(serverUrl: string | null) {
    this.#serverUrl = serverUrl;
  }

  /** Null for an error that is not about an approval. */
  resultOf(
    error: LeaseholdError,
    server: McpServer,
    { mcpReq }: Pick<ServerContext, 'mcpReq'>,
  ): CallToolResult | InputRequiredResult | null {
    const outcome = OUTCOMES.get(error.code);
    if (outcome === undefined) return null;
    const { code, message } = error;
    // WHY checked: it becomes part of a link.
    const id = error.approvalId !== null && UUID.test(error.approvalId) ? error.approvalId : null;
    const link = id === null || this.#serverUrl === null ? null : `${this.#serverUrl}/console/approvals/${id}`;
    if (code === 'APPROVAL_PENDING' && id !== null && link !== null && !this.#asked.has(id)) {
      const envelope: Declared = mcpReq.envelope ?? {};
      const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities();
      if (capabilities?.elicitation?.url !== undefined) {
        this.#remember(id);
        return inputRequired({
          inputRequests: { approval: inputRequired.elicitUrl({ message: REQUEST, url: link }) },
        });
      }
    }
    const advice = code === 'APPROVAL_PENDING' ? ` ${pendingAdvice(id, link)}` : '';
    return {
      content: [{ type: 'text', text: `${code}: ${message}${advice}` }],
      structuredContent: { code, ...outcome, approval_id: id, link },
      isError: true,
    };
  }

  #remember(id: string): void {
    if (this.#asked.size >= MAX_REMEMBERED) this.#asked.clear();
    this.#asked.add(id);
  }
}

function pendingAdvice(id: string | null, link: string | null): string {
  const at = link === null ? '' : `at ${link} or `;
  const how = id === null ? '' : ` An operator can answer ${at}with: leasehold approve ${id}.`;
  return `Nothing was sent. Call this tool again with the same arguments to go on waiting.${how}`;
}
