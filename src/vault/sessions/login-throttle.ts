/**
 * Limits failed logins per pair of agent and address, and per address, and the sign-ins that wait for the identity
 * provider. The limit is checked before the signature, and only a failed attempt is charged.
 * SOURCE: docs/decisions.md, "Agents and sessions".
 */

import { Counter } from '../../core/measures.ts';
import type { PrincipalName } from '../../core/names.ts';
import { ApiError, type ApiErrorCode } from '../../engine/errors.ts';
import { type Bucket, TokenBuckets } from '../../ledger/budgets.ts';
import type { Clock } from '../../ledger/clock.ts';

type LoginResult = 'ok' | 'failed' | 'throttled' | 'error';

/** Ends an attempt. Only a failed one is charged. */
export type Settle = (hasFailed: boolean) => void;

/** Sign-ins that may wait for the identity provider at the same time. Each holds a connection to it. */
const MAX_REDEMPTIONS = 32;
const MAX_REDEMPTIONS_PER_ADDRESS = 8;

export class LoginThrottle {
  /** Per pair of agent and address. */
  readonly #byAgent = new TokenBuckets(60, 60_000);
  readonly #byAddress = new TokenBuckets(300, 30_000);
  /** Per address, for sign-ins at the identity provider. */
  readonly #atProvider = new TokenBuckets(300, 30_000);
  #redemptions = 0;
  /** Attempts with a challenge of this server. `error`: neither the signature nor a limit decided. */
  readonly attempts = new Counter<LoginResult>(['ok', 'failed', 'throttled', 'error']);
  #settled = Promise.withResolvers<void>();

  /**
   * Admits an attempt and runs it: charged if it ends with AUTH_FAILED. `agent`: null while it is not known who signs
   * in. @throws RATE_LIMITED
   */
  async run<R>(
    agent: PrincipalName | null,
    remoteAddr: string | null,
    clock: Clock,
    attempt: () => Promise<R>,
  ): Promise<R> {
    return this.#run(await this.admit(agent, remoteAddr, clock), attempt, ['AUTH_FAILED']);
  }

  /**
   * Runs a sign-in at the identity provider. WHY not with `run`: an attempt lasts as long as the provider takes, and
   * logins from the same address would wait for its result. WHY UNAVAILABLE is charged: each attempt costs a request to
   * the provider, which may have failed because of the code. @throws RATE_LIMITED
   */
  async runAtProvider<R>(remoteAddr: string | null, clock: Clock, attempt: () => Promise<R>): Promise<R> {
    const bucket = this.#atProvider.at(addressPrefix(remoteAddr ?? 'local'), clock.now());
    if (bucket.tokens < 1) throw this.#limited(this.#atProvider.waitSeconds(bucket));
    if (bucket.reserved >= MAX_REDEMPTIONS_PER_ADDRESS || this.#redemptions >= MAX_REDEMPTIONS) {
      this.attempts.add('throttled');
      throw new ApiError('RATE_LIMITED', 'Too many sign-ins wait for the identity provider. Try again in 1 s.', 1);
    }
    bucket.reserved += 1;
    this.#redemptions += 1;
    const settle: Settle = (hasFailed) => {
      this.#redemptions -= 1;
      this.#settle([bucket], hasFailed);
    };
    return this.#run(settle, attempt, ['AUTH_FAILED', 'UNAVAILABLE']);
  }

  async #run<R>(settle: Settle, attempt: () => Promise<R>, charged: readonly ApiErrorCode[]): Promise<R> {
    try {
      const result = await attempt();
      settle(false);
      this.attempts.add('ok');
      return result;
    } catch (error) {
      const code = error instanceof ApiError ? error.code : null;
      settle(code !== null && charged.includes(code));
      this.attempts.add(code === 'AUTH_FAILED' ? 'failed' : 'error');
      throw error;
    }
  }

  /**
   * Admits an attempt. If the attempts in progress may exhaust the limit, it waits for them first, so that any number
   * of concurrent successful logins is admitted. @throws RATE_LIMITED with the seconds to wait
   */
  async admit(agent: PrincipalName | null, remoteAddr: string | null, clock: Clock): Promise<Settle> {
    for (;;) {
      const settle = this.tryAdmit(agent, remoteAddr, clock.now());
      if (settle !== null) return settle;
      await this.#settled.promise;
    }
  }

  /** Null if the result depends on the attempts in progress. @throws RATE_LIMITED */
  tryAdmit(agent: PrincipalName | null, remoteAddr: string | null, now: number): Settle | null {
    const address = addressPrefix(remoteAddr ?? 'local');
    const ofAddress = this.#byAddress.at(address, now);
    if (ofAddress.tokens < 1) throw this.#limited(this.#byAddress.waitSeconds(ofAddress));
    const ofAgent = agent === null ? null : this.#byAgent.at(`${agent.toLowerCase()} ${address}`, now);
    if (ofAgent !== null && ofAgent.tokens < 1) throw this.#limited(this.#byAgent.waitSeconds(ofAgent));
    const buckets = ofAgent === null ? [ofAddress] : [ofAddress, ofAgent];
    if (buckets.some(({ tokens, reserved }) => tokens - reserved < 1)) return null;
    for (const bucket of buckets) bucket.reserved += 1;
    return (hasFailed) => this.#settle(buckets, hasFailed);
  }

  #limited(seconds: number): ApiError {
    this.attempts.add('throttled');
    return new ApiError(
      'RATE_LIMITED',
      `Too many failed logins from this address. Try again in ${seconds} s.`,
      seconds,
    );
  }

  #settle(buckets: readonly Bucket[], hasFailed: boolean): void {
    for (const bucket of buckets) {
      bucket.reserved -= 1;
      if (hasFailed) bucket.tokens -= 1;
    }
    this.#settled.resolve();
    this.#settled = Promise.withResolvers<void>();
  }
}

/**
 * An IPv4 address unchanged, or the first 64 bits of an IPv6 address, because a single host can use all addresses of a
 * /64.
 */
export function addressPrefix(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const first = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - first.length - rest.length)).fill('0');
  return [...first, ...(tail === undefined ? [] : zeros), ...rest]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
