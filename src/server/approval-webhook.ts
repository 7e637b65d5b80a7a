/**
 * Posts what becomes of approvals to a webhook, signed and one at a time. It never delays a request: a receiver that
 * does not respond is tried again with longer pauses, and the queue is bounded. A message that fails goes behind those
 * of other approvals, which the receiver may take. SOURCE: Standard Webhooks 1.0.0.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalId } from '../core/approval.ts';
import { Tally } from '../core/measures.ts';
import { parseWebhookSecret, webhookSignature } from '../crypto/webhook-signature.ts';
import { StartupError } from '../platform/errors.ts';
import { warnIfReadableByOthers } from '../platform/private-files.ts';
import { settledWithin } from '../platform/settled-within.ts';
import type { ApprovalMessage } from './approval-message.ts';
import type { ApprovalWebhookOption } from './approval-webhook-option.ts';
import { logFailure, type ServiceLog } from './log.ts';
import { readTrimmed } from './receiver-secrets.ts';
import { Poster } from './streams/http-post.ts';
import { SinkError } from './streams/sink.ts';

const MAX_QUEUED = 1000;
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
const LOG_INTERVAL_MS = 60_000;
/** For the messages that wait when the service stops. */
const STOP_TIMEOUT_MS = 2000;
/** These may succeed later; with any other 4xx the receiver has rejected the message. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([404, 408, 425, 429]);

export class ApprovalWebhook {
  readonly #poster: Poster;
  readonly #host: string;
  readonly #key: Uint8Array;
  readonly #now: () => number;
  readonly #logError: ServiceLog['error'];
  readonly #stopped = new AbortController();
  readonly #queue: ApprovalMessage[] = [];
  #running: Promise<void> | null = null;
  #loggedAt = Number.NEGATIVE_INFINITY;
  readonly results = new Tally(['sent', 'failed', 'dropped']);

  /** @throws StartupError */
  constructor(
    { url, secretFile }: ApprovalWebhookOption,
    now: () => number,
    logError: ServiceLog['error'],
    warn: (line: string) => void,
  ) {
    const key = parseWebhookSecret(readTrimmed(secretFile));
    if (key === null) throw new StartupError(`${secretFile} must contain whsec_ and 24 to 64 bytes as base64.`);
    warnIfReadableByOthers(secretFile, warn);
    this.#key = key;
    this.#host = url.host;
    this.#poster = new Poster({ url, token: null, ca: null });
    this.#now = now;
    this.#logError = logError;
  }

  offer(message: ApprovalMessage): void {
    if (this.#stopped.signal.aborted) return;
    this.#queue.push(message);
    // WHY the oldest: what is new can still be answered.
    if (this.#queue.length > MAX_QUEUED) this.#drop();
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

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
        // The queue may have dropped it meanwhile.
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

  /** Moves the messages of the approval to the end, in their order. */
  #postpone(approvalId: ApprovalId): void {
    const isPostponed = (message: ApprovalMessage): boolean => message.approvalId === approvalId;
    const postponed = this.#queue.filter(isPostponed);
    const others = this.#queue.filter((message) => !isPostponed(message));
    this.#queue.splice(0, this.#queue.length, ...others, ...postponed);
  }

  /** Resolves to false if the receiver rejected it. @throws SinkError if it may succeed later; the signal's reason */
  async #send({ id, body }: ApprovalMessage, signal: AbortSignal): Promise<boolean> {
    const seconds = Math.floor(this.#now() / 1000);
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': webhookSignature(this.#key, id, seconds, body),
    };
    const { status } = await this.#poster.exchange(body, headers, signal);
    if (status >= 200 && status < 300) return true;
    const error = new SinkError(`the receiver returned HTTP ${status}`);
    if (status < 400 || status >= 500 || TRANSIENT_STATUSES.has(status)) throw error;
    this.#logOften(error);
    return false;
  }

  #logOften(error: unknown): void {
    if (performance.now() - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = performance.now();
    logFailure(this.#logError, `an approval could not be sent to the webhook at ${this.#host}`, error);
  }

  /** Resolves when the messages that wait were sent, or after a short time. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), STOP_TIMEOUT_MS);
    await settledWithin(this.#running, STOP_TIMEOUT_MS + 1000);
    clearTimeout(timer);
    this.#stopped.abort();
    this.#poster.close();
  }
}
