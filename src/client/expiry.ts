/**
 * The expiry of a lease or a session by this machine's clocks. The server's clock decides and may differ; durations
 * are the same on both. WHY two clocks: the monotonic one stops while the computer sleeps, and the wall clock may be
 * set.
 */

export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class Expiry {
  readonly #monotonicMs: number;
  readonly #wallMs: number;

  /** Counted from the request and not from the response, so that it is never later than the server's expiry. */
  constructor(sentAt: ClockReading, durationMs: number) {
    this.#monotonicMs = sentAt.monotonicMs + durationMs;
    this.#wallMs = sentAt.wallMs + durationMs;
  }

  /** Milliseconds; 0 or less after the expiry. */
  remainingMs(at: ClockReading = now()): number {
    return Math.min(this.#monotonicMs - at.monotonicMs, this.#wallMs - at.wallMs);
  }
}

export function now(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
