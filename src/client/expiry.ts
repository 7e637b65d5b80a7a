/**
 * When a lease or a session ends, by clocks of this machine. The service's clock decides, and may differ from ours; how long
 * something lasts is the same for both. Both clocks of this machine are sentAt: the monotonic one stands still while a computer
 * sleeps, the other may be set.
 */

/** An answer's Date is cut to the second. */
const DATE_IS_CUT_BY_MS = 1000;

/** A moment of asking, by both clocks. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class Expiry {
  readonly #monotonicMs: number;
  readonly #wallMs: number;

  /** Counted from the moment of asking, not of the answer, so that it is never later than the service's. */
  constructor(sentAt: ClockReading, lastsMs: number) {
    this.#monotonicMs = sentAt.monotonicMs + lastsMs;
    this.#wallMs = sentAt.wallMs + lastsMs;
  }

  /** Milliseconds; 0 or less where it has ended. */
  remainingMs(at: ClockReading = now()): number {
    return Math.min(this.#monotonicMs - at.monotonicMs, this.#wallMs - at.wallMs);
  }
}

export function now(): ClockReading {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/** How long it lasts, of which only the end is known: by what the answer's Date tells of the service's clock. A guess, if a good one. */
export function estimateDurationMs(expiresAt: string, { wallMs }: ClockReading, date: string | null): number {
  const servicesMs = date === null ? Number.NaN : Date.parse(date) + DATE_IS_CUT_BY_MS;
  return Date.parse(expiresAt) - (Number.isNaN(servicesMs) ? wallMs : servicesMs);
}
