/**
 * Posts approval events to a webhook, signed and one at a time. It never delays a request: a receiver that does not
 * respond is tried again with longer pauses, and the queue is bounded. A failed message is queued again behind those of
 * other approvals, which the receiver may accept. SOURCE: Standard Webhooks 1.0.0.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter } from '../core/measures.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import { settledWithin } from '../platform/waiting.ts';
import { type Approval, type ApprovalId, describeScope, describeTimeout } from '../vault/approvals/approval.ts';
import type { ApprovalEvent } from '../vault/approvals/approval-events.ts';
import type { ApprovalWebhookOption } from './flag-values.ts';
import { type ServerLog, withoutRepetitions } from './log.ts';
import { failureOf, readWebhookKey, WebhookClient } from './webhook-client.ts';

const MAX_QUEUED = 1000;
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
const LOG_INTERVAL_MS = 60_000;
const STOP_TIMEOUT_MS = 2000;
/** Statuses that may be temporary. With any other 4xx the receiver has rejected the message. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([404, 408, 425, 429]);

const OUTCOME_MS = 3_600_000;

interface ApprovalMessage {
  readonly approvalId: ApprovalId;
  /** The same for repetitions, including those from other nodes. */
  readonly id: string;
  readonly body: string;
  /** Time after which the message is useless, in milliseconds since 1970. */
  readonly expiresAt: number;
}

export class ApprovalWebhook {
  readonly #client: WebhookClient;
  readonly #host: string;
  readonly #now: () => number;
  readonly #consoleUrl: () => string | null;
  readonly #logError: ServerLog['error'];
  readonly #stopped = new AbortController();
  readonly #queue: ApprovalMessage[] = [];
  #running: Promise<void> | null = null;
  readonly results = new Counter(['sent', 'failed', 'dropped']);

  constructor(
    { url, secretFile }: ApprovalWebhookOption,
    now: () => number,
    consoleUrl: () => string | null,
    logError: ServerLog['error'],
    warn: (line: string) => void,
  ) {
    this.#host = url.host;
    this.#client = new WebhookClient({ url, key: readWebhookKey(secretFile, warn), token: null, ca: null });
    this.#now = now;
    this.#consoleUrl = consoleUrl;
    this.#logError = withoutRepetitions(logError, LOG_INTERVAL_MS);
  }

  readonly onEvent = (event: ApprovalEvent): void => {
    if (this.#stopped.signal.aborted) return;
    this.#queue.push(toMessage(event, this.#consoleUrl(), this.#now()));
    // WHY the oldest: newer requests can still be answered.
    if (this.#queue.length > MAX_QUEUED) this.#drop();
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  };

  #drop(): void {
    this.#queue.shift();
    this.results.add('dropped');
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    let retryMs = MIN_RETRY_MS;
    for (let [message] = this.#queue; message !== undefined && !signal.aborted; [message] = this.#queue) {
      if (this.#now() >= message.expiresAt) {
        this.#drop();
        continue;
      }
      try {
        const isTaken = await this.#send(message, signal);
        // The queue may have dropped it in the meantime.
        if (this.#queue[0] === message) this.#queue.shift();
        this.results.add(isTaken ? 'sent' : 'dropped');
        retryMs = MIN_RETRY_MS;
      } catch (error) {
        if (signal.aborted) return;
        this.results.add('failed');
        this.#logOften(error);
        this.#postpone(message.approvalId);
        await sleep(retryMs, undefined, { signal }).catch(() => undefined);
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
      }
    }
  }

  #postpone(approvalId: ApprovalId): void {
    const isPostponed = (message: ApprovalMessage): boolean => message.approvalId === approvalId;
    const postponed = this.#queue.filter(isPostponed);
    const others = this.#queue.filter((message) => !isPostponed(message));
    this.#queue.splice(0, this.#queue.length, ...others, ...postponed);
  }

  /** False if the receiver rejected it. @throws ReceiverError if it may succeed later; the signal's reason */
  async #send({ id, body }: ApprovalMessage, signal: AbortSignal): Promise<boolean> {
    const response = await this.#client.send({ id, body, sentAt: this.#now() }, signal);
    const failure = failureOf(response);
    if (failure === null) return true;
    const { status } = response;
    if (status < 400 || status >= 500 || TRANSIENT_STATUSES.has(status)) throw failure;
    this.#logOften(failure);
    return false;
  }

  #logOften(error: unknown): void {
    this.#logError(`an approval could not be sent to the webhook at ${this.#host}`, error);
  }

  /** Resolves when the queued messages were sent, or after a short time. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), STOP_TIMEOUT_MS);
    await settledWithin(this.#running, STOP_TIMEOUT_MS + 1000);
    clearTimeout(timer);
    this.#stopped.abort();
  }
}

/**
 * The webhook's message about an approval. `consoleUrl`: null if browsers cannot reach the console. INVARIANT: it
 * contains nothing that can answer the approval, such as the nonce. Of the request it contains only the method, the
 * host and the path: no query, no body, no text that the agent wrote. SOURCE: docs/approvals.md, "Webhook".
 */
function toMessage({ kind, approval }: ApprovalEvent, consoleUrl: string | null, now: number): ApprovalMessage {
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
