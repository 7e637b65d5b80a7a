/**
 * When a lease or a session ends, by clocks of this machine. The service's clock decides; how far it is from ours, its answer's Date
 * tells. Both clocks of this machine are asked: the monotonic one stands still while a computer sleeps, the other may be set.
 */

/** An answer's Date is cut to the second. */
const DATE_IS_CUT_BY_MS = 1000;

/** A moment of asking, by both clocks. */
export interface Asked {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class End {
  readonly #monotonicMs: number;
  readonly #wallMs: number;

  /** Never later than the service's: what is left is counted from the moment of asking, not of the answer. */
  constructor(expiresAt: string, asked: Asked, date: string | null) {
    const servicesMs = date === null ? Number.NaN : Date.parse(date) + DATE_IS_CUT_BY_MS;
    const leftMs = Date.parse(expiresAt) - (Number.isNaN(servicesMs) ? asked.wallMs : servicesMs);
    this.#monotonicMs = asked.monotonicMs + leftMs;
    this.#wallMs = asked.wallMs + leftMs;
  }

  /** Milliseconds; 0 or less where it has ended. */
  left(now: Asked = asking()): number {
    return Math.min(this.#monotonicMs - now.monotonicMs, this.#wallMs - now.wallMs);
  }
}

export function asking(): Asked {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
