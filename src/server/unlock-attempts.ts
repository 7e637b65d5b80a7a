/** Attempts to unlock the vault: the shares that were given, and the limit on wrong secrets. */
import { ApiError, invalidRequest } from '../core/errors.ts';
import type { KeySlot } from '../core/keyset.ts';
import { isShareOf, type Share } from '../crypto/shares.ts';

/** Shares that were given are dropped after this time without another one. */
const SHARES_TTL_MS = 10 * 60_000;
const MAX_FAILURES = 10;
const FAILURES_WINDOW_MS = 60_000;

/** The shares of a slot that were given so far. */
interface GivenShares {
  readonly given: readonly Share[];
  readonly needed: number;
}

export class UnlockAttempts {
  readonly #log: (line: string) => void;
  #shares = new Map<string, Map<number, Share>>();
  #sharesExpire: NodeJS.Timeout | null = null;
  #failures: number[] = [];

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** @throws INVALID_REQUEST for a share of none of the slots, which spoils nothing */
  addShare(share: Share, slots: readonly KeySlot[]): GivenShares {
    const { group } = share;
    const slot = slots.find(({ parameters }) => parameters['group'] === group);
    if (slot === undefined || !isShareOf(share, slot.parameters))
      throw this.failed(invalidRequest('secret', 'is a share of another vault, or of a slot that was removed'));
    const given = this.#shares.get(group) ?? new Map<number, Share>();
    this.#shares.set(group, given.set(share.index, share));
    this.#sharesExpire?.close();
    this.#sharesExpire = setTimeout(() => this.forgetShares(), SHARES_TTL_MS).unref();
    const needed = Number(slot.parameters['threshold']);
    if (given.size >= needed) this.#shares.delete(group);
    return { given: [...given.values()], needed };
  }

  forgetShares(): void {
    this.#shares = new Map();
    this.#sharesExpire?.close();
    this.#sharesExpire = null;
  }

  /** @throws RATE_LIMITED */
  assertMayTry(): void {
    const now = performance.now();
    this.#failures = this.#failures.filter((at) => now - at < FAILURES_WINDOW_MS);
    if (this.#failures.length < MAX_FAILURES) return;
    throw new ApiError('RATE_LIMITED', 'Too many wrong secrets. Wait a minute.', FAILURES_WINDOW_MS / 1000);
  }

  /** Counts a wrong secret. Returns the error. */
  failed(error: ApiError): ApiError {
    this.#failures.push(performance.now());
    this.#log(`a wrong secret was given to unlock the vault (${this.#failures.length} in a minute)`);
    return error;
  }
}
