/**
 * The expiry of a lease or a session by this machine's clocks. The service's clock decides and may differ; durations
 * are the same on both. WHY two clocks: the monotonic one stops while the computer sleeps, and the wall clock may be
 * set.
 */

/** The Date header is truncated to seconds. */
const DATE_RESOLUTION_MS = 1000;

/** One reading of both clocks. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class Expiry {
  readonly #monotonicMs: number;
  readonly #wallMs: number;

  /** Counted from the request and not from the response, so that it is never later than the service's expiry. */
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

/**
 * Estimates the remaining time of something whose expiry alone is known. `date`: the response's Date header, the
 * service's clock.
 */
export function estimateDurationMs(expiresAt: string, { wallMs }: ClockReading, date: string | null): number {
  const serviceMs = date === null ? Number.NaN : Date.parse(date) + DATE_RESOLUTION_MS;
  return Date.parse(expiresAt) - (Number.isNaN(serviceMs) ? wallMs : serviceMs);
}
