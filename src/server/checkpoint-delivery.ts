/**
 * Sends checkpoints to where the operator keeps them. A destination gets the newest one; while it fails, it gets none,
 * and then the newest again. It never delays the log.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { settledWithin } from '../platform/settled-within.ts';
import type { SignedCheckpoint } from '../vault/checkpoints.ts';
import type { ServiceLog } from './log.ts';
import { logFailure } from './log-failure.ts';

export interface CheckpointDestination {
  /** For the service's log. */
  readonly name: string;
  /** For metrics. */
  readonly kind: 'data-directory' | 'file' | 'stdout' | 'webhook' | 'witness';
  /** @throws if the checkpoint is not known to have arrived */
  send(checkpoint: SignedCheckpoint, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** For metrics. */
export interface DestinationStatus {
  /** Its kind, with a number from the second of that kind on. */
  readonly label: string;
  /** Time for which a checkpoint waits that is not known to have arrived; 0 if none does. */
  readonly waitingSeconds: number;
  readonly failures: number;
}

const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
/** For the last checkpoint, when the service stops. */
const STOP_TIMEOUT_MS = 2000;
/** For a destination that does not settle when it is aborted. */
const ABORT_TIMEOUT_MS = 3000;

export class CheckpointDelivery {
  readonly #destination: CheckpointDestination;
  readonly #label: string;
  readonly #logError: ServiceLog['error'];
  readonly #stopped = new AbortController();
  #waiting: SignedCheckpoint | null = null;
  /** Since when a checkpoint waits, without one that has arrived meanwhile; as `performance.now()`. */
  #waitingSince = 0;
  #failures = 0;
  #running: Promise<void> | null = null;

  constructor(destination: CheckpointDestination, label: string, logError: ServiceLog['error']) {
    this.#destination = destination;
    this.#label = label;
    this.#logError = logError;
  }

  get status(): DestinationStatus {
    const waitingSeconds = this.#waiting === null ? 0 : (performance.now() - this.#waitingSince) / 1000;
    return { label: this.#label, waitingSeconds, failures: this.#failures };
  }

  offer(checkpoint: SignedCheckpoint): void {
    if (this.#waiting === null) this.#waitingSince = performance.now();
    this.#waiting = checkpoint;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Resolves when the waiting checkpoint was sent, or after a short time. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#stopped.abort(), STOP_TIMEOUT_MS);
    await settledWithin(this.#running, STOP_TIMEOUT_MS + ABORT_TIMEOUT_MS);
    clearTimeout(timer);
    await settledWithin(this.#destination.close(), ABORT_TIMEOUT_MS);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let retryMs = MIN_RETRY_MS; this.#waiting !== null && !signal.aborted; ) {
      const checkpoint = this.#waiting;
      try {
        await this.#destination.send(checkpoint, signal);
        if (this.#waiting === checkpoint) this.#waiting = null;
        else this.#waitingSince = performance.now();
        retryMs = MIN_RETRY_MS;
      } catch (error) {
        if (signal.aborted) return;
        this.#failures += 1;
        const line = `a checkpoint could not be sent to ${this.#destination.name}; the service retries`;
        logFailure(this.#logError, line, error);
        await sleep(retryMs, undefined, { signal }).catch(() => undefined);
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
      }
    }
  }
}
