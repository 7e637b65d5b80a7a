/**
 * Writes signed checkpoints to the files outside the database. Each file receives the newest one. A file that cannot be
 * written is tried again with the newest checkpoint of that moment. This never delays the audit log.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { settledWithin } from '../platform/waiting.ts';
import type { SignedCheckpoint } from '../vault/audit/checkpoints.ts';
import type { CheckpointFile } from './checkpoint-files.ts';
import { logFailure, type ServiceLog } from './log.ts';

export interface CheckpointSinkStatus {
  /** `data-directory`, or `file`; from the second file on, with a number. */
  readonly label: string;
  /** How long a checkpoint has waited without being known to be on disk; 0 if none waits. */
  readonly waitingSeconds: number;
  readonly failures: number;
}

const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
/**
 * Limits the wait at shutdown for the last checkpoint, and for a file that does not close, such as on a share that
 * hangs.
 */
const STOP_TIMEOUT_MS = 2000;

export class CheckpointSinks {
  readonly #sinks: readonly CheckpointSink[];

  constructor(files: readonly Sink[], logError: ServiceLog['error']) {
    let others = 0;
    this.#sinks = files.map((file) => {
      others += file.isOwn ? 0 : 1;
      const label = file.isOwn ? 'data-directory' : others === 1 ? 'file' : `file-${others}`;
      return new CheckpointSink(file, label, logError);
    });
  }

  publish(checkpoint: SignedCheckpoint): void {
    for (const sink of this.#sinks) sink.publish(checkpoint);
  }

  status(): CheckpointSinkStatus[] {
    return this.#sinks.map(({ status }) => status);
  }

  /** Resolves when the waiting checkpoints were written, or after a short time. */
  async stop(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.stop()));
  }
}

type Sink = Pick<CheckpointFile, 'path' | 'isOwn' | 'append' | 'close'>;

class CheckpointSink {
  readonly #file: Sink;
  readonly #label: string;
  readonly #logError: ServiceLog['error'];
  readonly #stopped = new AbortController();
  #waiting: SignedCheckpoint | null = null;
  /** When the oldest unwritten checkpoint began to wait, on the clock of `performance.now()`. */
  #waitingSince = 0;
  #failures = 0;
  #running: Promise<void> | null = null;

  constructor(file: Sink, label: string, logError: ServiceLog['error']) {
    this.#file = file;
    this.#label = label;
    this.#logError = logError;
  }

  get status(): CheckpointSinkStatus {
    const waitingSeconds = this.#waiting === null ? 0 : (performance.now() - this.#waitingSince) / 1000;
    return { label: this.#label, waitingSeconds, failures: this.#failures };
  }

  publish(checkpoint: SignedCheckpoint): void {
    if (this.#waiting === null) this.#waitingSince = performance.now();
    this.#waiting = checkpoint;
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    await settledWithin(this.#running, STOP_TIMEOUT_MS);
    this.#stopped.abort();
    await settledWithin(this.#file.close(), STOP_TIMEOUT_MS);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let retryMs = MIN_RETRY_MS; this.#waiting !== null && !signal.aborted; ) {
      const checkpoint = this.#waiting;
      try {
        await this.#file.append(checkpoint);
        if (this.#waiting === checkpoint) this.#waiting = null;
        else this.#waitingSince = performance.now();
        retryMs = MIN_RETRY_MS;
      } catch (error) {
        this.#failures += 1;
        const line = `a checkpoint could not be written to ${this.#file.path}; the server retries`;
        logFailure(this.#logError, line, error);
        await sleep(retryMs, undefined, { signal }).catch(() => undefined);
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
      }
    }
    // WHY here: a checkpoint that is published after the loop has ended must start the loop again.
    this.#running = null;
  }
}
