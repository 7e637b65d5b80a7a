/**
 * Log streams: each sends the audit log to one sink, a file or a webhook. A stream reads pages of durable entries
 * behind the head over a separate connection, sends each and then saves the position. A sink that fails or hangs delays
 * only its own stream. INVARIANT: the saved position is not past an entry that the receiver does not have, so every
 * entry arrives at least once, in the order of the audit log. Loaded only if there are streams.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCertificates } from '../crypto/primitives.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { assertLineFile, LineFile } from '../platform/line-file.ts';
import { settledWithin } from '../platform/waiting.ts';
import { StoreError } from '../store/errors.ts';
import type { StreamLog } from '../store/port.ts';
import type { AuditEntry } from '../vault/audit/audit-entry.ts';
import { yieldToEventLoop } from '../vault/paging.ts';
import type { Vault } from '../vault/vault.ts';
import type { Configuration } from './configuration.ts';
import type { StreamOption } from './flag-values.ts';
import { logFailure, type ServerLog } from './log.ts';
import {
  failureOf,
  ReceiverError,
  readBearerToken,
  readTrimmed,
  readWebhookKey,
  WebhookClient,
  type WebhookTarget,
} from './webhook-client.ts';

/** Entries in memory per stream, about 250 KiB. */
const PAGE_ENTRIES = 500;
/** Entries read without a pause, half a millisecond of work. */
const STEP_ENTRIES = 125;
const POLL_INTERVAL_MS = 200;
/** The delay after a partial page: a page and its sync cost the same for one entry as for a hundred. */
const BATCH_DELAY_MS = 100;
const SAVE_INTERVAL_MS = 1000;
const CLAIM_INTERVAL_MS = 2000;
const [MIN_BACKOFF_MS, MAX_BACKOFF_MS] = [500, 60_000];
const MAX_RETRY_AFTER_MS = 300_000;
const DRAIN_TIMEOUT_MS = 1500;
/**
 * Limits the wait for a sink that does not settle when it is aborted, such as a file on a dead network disk. It must
 * not delay a lock.
 */
const STOP_TIMEOUT_MS = 5000;

export interface Sink {
  /**
   * Sends the entries, which follow those of the previous call. Resolves when the receiver has them: then the position
   * may be saved. @throws ReceiverError, or the signal's reason
   */
  send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

export interface StreamParts {
  readonly name: string;
  openLog(): StreamLog;
  openSink(): Sink;
  /** The last entry that this node knows, durable or not. A read is needed only after it has moved. */
  newestSeq(): number;
  now(): number;
  onFailure(error: unknown): void;
}

export interface StreamStatus {
  readonly name: string;
  /** Whether this node sends the stream. Among several nodes, one sends it. */
  readonly isSending: boolean;
  readonly sent: number;
  readonly failures: number;
  readonly lagEntries: number;
  /** Age of the oldest unsent entry; 0 if every entry was sent. */
  readonly lagSeconds: number;
}

export class LogStream {
  readonly #parts: StreamParts;
  readonly #stopping = new AbortController();
  readonly #aborted = new AbortController();
  readonly #done: Promise<void>;
  #isSending = false;
  #sent = 0;
  #failures = 0;
  #attempts = 0;
  #sentSeq = 0;
  #savedSeq = 0;
  #savedAt = 0;
  #pendingSince: number | null = null;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#done = this.#run();
  }

  status(): StreamStatus {
    const { name, newestSeq, now } = this.#parts;
    // After a failed attempt this node is still responsible for the stream.
    const isOurs = this.#isSending || this.#attempts > 0;
    const lagEntries = isOurs ? Math.max(0, newestSeq() - this.#sentSeq) : 0;
    const waitingMs = lagEntries === 0 || this.#pendingSince === null ? 0 : now() - this.#pendingSince;
    return {
      name,
      isSending: this.#isSending,
      sent: this.#sent,
      failures: this.#failures,
      lagEntries,
      lagSeconds: Math.max(0, waitingMs / 1000),
    };
  }

  /** Sends the remaining entries for a short time. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const timer = setTimeout(() => this.#aborted.abort(), DRAIN_TIMEOUT_MS);
    await settledWithin(this.#done, STOP_TIMEOUT_MS);
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      let pauseMs = CLAIM_INTERVAL_MS;
      try {
        await this.#send();
        this.#attempts = 0;
      } catch (error) {
        if (this.#aborted.signal.aborted) return;
        this.#failures += 1;
        pauseMs = this.#backoffMs(error);
        this.#parts.onFailure(error);
      }
      await this.#sleep(pauseMs);
    }
  }

  #backoffMs(error: unknown): number {
    const byAttempts = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    const asked = error instanceof ReceiverError ? (error.retryAfterMs ?? 0) : 0;
    // WHY random: nodes and streams that failed together should not retry together.
    return Math.max(byAttempts * (0.75 + Math.random() / 2), Math.min(asked, MAX_RETRY_AFTER_MS));
  }

  /** Resolves when another node sends the stream, or the server stops. */
  async #send(): Promise<void> {
    const log = this.#parts.openLog();
    try {
      const { name } = this.#parts;
      if (!(await log.claim(name))) return;
      await this.#readPosition(log);
      this.#isSending = true;
      const sink = this.#parts.openSink();
      try {
        await this.#follow(log, sink);
      } finally {
        await sink.close();
        await this.#save(log).catch(() => undefined);
      }
    } finally {
      this.#isSending = false;
      log.close();
    }
  }

  /** Reads the saved position. If the audit log has lost entries, new entries receive numbers that were sent before. */
  async #readPosition(log: StreamLog): Promise<void> {
    const { name } = this.#parts;
    const [position, end] = [await log.readPosition(name), await log.readEnd()];
    if (position > end) await log.savePosition(name, end);
    this.#savedSeq = Math.min(position, end);
    this.#sentSeq = this.#savedSeq;
  }

  async #follow(log: StreamLog, sink: Sink): Promise<void> {
    while (!this.#aborted.signal.aborted) {
      const end = this.#parts.newestSeq() > this.#sentSeq ? await log.readEnd() : 0;
      if (end > this.#sentSeq) {
        const page = await this.#readPage(log, end);
        const last = page.at(-1);
        if (last === undefined) throw new StoreError('unavailable', 'audit entries are missing');
        await sink.send(page, this.#aborted.signal);
        this.#sentSeq = last.seq;
        this.#sent += page.length;
        this.#attempts = 0;
        this.#pendingSince = null;
        if (page.length < PAGE_ENTRIES) await this.#sleep(BATCH_DELAY_MS);
      } else if (this.#stopping.signal.aborted) return;
      else await this.#sleep(POLL_INTERVAL_MS);
      if (performance.now() - this.#savedAt >= SAVE_INTERVAL_MS) await this.#save(log);
    }
  }

  async #readPage(log: StreamLog, end: number): Promise<readonly AuditEntry[]> {
    const page: AuditEntry[] = [];
    while (page.length < PAGE_ENTRIES) {
      await yieldToEventLoop();
      const step = await log.readEntries((page.at(-1)?.seq ?? this.#sentSeq) + 1, end, STEP_ENTRIES);
      page.push(...step);
      if (step.length < STEP_ENTRIES) break;
    }
    const [first] = page;
    if (first !== undefined) this.#pendingSince = Date.parse(first.timestamp);
    return page;
  }

  async #save(log: StreamLog): Promise<void> {
    const seq = this.#sentSeq;
    this.#savedAt = performance.now();
    if (seq <= this.#savedSeq) return;
    await log.savePosition(this.#parts.name, seq);
    this.#savedSeq = seq;
  }

  async #sleep(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
  }
}

/** Reads the files of the options at each startup. @throws StartupError */
export function startLogStreams(
  { logStreams, streamFiles: { secretFile, tokenFile, caFile } }: Pick<Configuration, 'logStreams' | 'streamFiles'>,
  { ledger, store, clock }: Pick<Vault, 'ledger' | 'store' | 'clock'>,
  warn: (line: string) => void,
  logError: ServerLog['error'],
): readonly LogStream[] {
  const key = secretFile === null ? null : readWebhookKey(secretFile, warn);
  const token = tokenFile === null ? null : readBearerToken(tokenFile, warn);
  const ca = caFile === null ? null : readAuthorities(caFile);
  for (const { sink } of logStreams) if (sink.kind === 'file') assertLineFile(sink.path);
  const openSink = (sink: StreamOption['sink']): Sink => {
    if (sink.kind === 'file') return fileSink(sink.path);
    if (key === null) throw new Error('a webhook has no secret');
    return webhookSink({ url: sink.url, key, token, ca });
  };
  return logStreams.map(
    ({ name, sink }) =>
      new LogStream({
        name,
        openSink: () => openSink(sink),
        openLog: () => store.openStreamLog(),
        newestSeq: () => ledger.memory.lastSeenEntry?.seq ?? 0,
        now: () => clock.now(),
        onFailure: (error) => logFailure(logError, `log stream ${name}`, error),
      }),
  );
}

function readAuthorities(file: string): string {
  const pem = readTrimmed(file);
  if (hasCertificates(pem)) return pem;
  throw new StartupError(`${file} must contain certificates in PEM.`);
}

/** Appends entries, one JSON object on each line, and syncs them before they count as sent. */
function fileSink(path: string): Sink {
  const file = new LineFile(path);
  return {
    async send(entries) {
      try {
        await file.append(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
      } catch (error) {
        throw new ReceiverError(`${path} could not be written${errnoSuffix(error)}`);
      }
    },
    close: () => file.close(),
  };
}

/**
 * Posts pages of entries. A repeated page with the same entries has the same id, so that a receiver can drop it.
 * Entries always contain an `hmac`.
 */
function webhookSink(target: WebhookTarget): Sink {
  const client = new WebhookClient(target);
  return {
    async send(entries, signal) {
      const sentAt = Date.now();
      const timestamp = new Date(sentAt).toISOString();
      const body = JSON.stringify({ type: 'audit.entries', timestamp, data: { entries } });
      const failure = failureOf(await client.send({ id: idOf(entries), body, sentAt }, signal));
      if (failure !== null) throw failure;
    },
    close: async () => undefined,
  };
}

/** WHY the MAC: after a restored backup or an accepted rollback, other entries have the same sequence numbers. */
function idOf(entries: readonly AuditEntry[]): string {
  const [first, last] = [entries[0], entries.at(-1)];
  return `audit-${first?.seq ?? 0}-${last?.seq ?? 0}-${last?.hmac ?? ''}`;
}
