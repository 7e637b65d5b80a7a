/**
 * Slows guessing: failed verifies are limited per agent and address together, and per address. It is looked at before the
 * signature is checked, and charged when the try has failed. SOURCE: decisions, "Authentication".
 */
import { ApiError } from '../core/errors.ts';
import { FifoCache } from '../core/fifo-cache.ts';
import type { AgentName } from '../core/names.ts';
import type { Clock } from '../ledger/clock.ts';

interface Limit {
  readonly burst: number;
  readonly perSecond: number;
}

const PER_AGENT_AND_ADDRESS: Limit = { burst: 60, perSecond: 1 };
const PER_ADDRESS: Limit = { burst: 300, perSecond: 10 };
/** Buckets kept at most of each kind; the one that is the longest unused goes first. */
const MAX_BUCKETS = 20_000;

interface Bucket {
  /** Failures that are still free. */
  tokens: number;
  /** When `tokens` was right. */
  at: number;
  /** Tries under way: each may turn out a failure. */
  pending: number;
}

class Buckets {
  readonly #limit: Limit;
  readonly #buckets = new FifoCache<string, Bucket>();

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  /** The bucket as it is now. Asking makes it the one that was used last. */
  at(key: string, now: number): Bucket {
    const { burst, perSecond } = this.#limit;
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now, pending: 0 };
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    this.#buckets.put(key, bucket);
    if (this.#buckets.size > MAX_BUCKETS) this.#buckets.evictOldest();
    return bucket;
  }

  /** Seconds until a failure is free again. */
  waitSeconds({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil((1 - tokens) / this.#limit.perSecond));
  }
}

/** Ends a try: only one that failed costs anything. */
export type Settle = (hasFailed: boolean) => void;

export class LoginThrottle {
  readonly #byAgent = new Buckets(PER_AGENT_AND_ADDRESS);
  readonly #byAddress = new Buckets(PER_ADDRESS);
  #settled = Promise.withResolvers<void>();

  /**
   * Admits a try, or waits for the tries under way where they might leave room for it: successes cost nothing, however many come
   * at once. @throws RATE_LIMITED with the seconds to wait.
   */
  async admit(agent: AgentName, remoteAddr: string | null, clock: Clock): Promise<Settle> {
    for (;;) {
      const settle = this.tryAdmit(agent, remoteAddr, clock.now());
      if (settle !== null) return settle;
      await this.#settled.promise;
    }
  }

  /** Null where it depends on the tries under way. @throws RATE_LIMITED */
  tryAdmit(agent: AgentName, remoteAddr: string | null, now: number): Settle | null {
    const address = addressPrefix(remoteAddr ?? 'local');
    const ofAddress = this.#byAddress.at(address, now);
    if (ofAddress.tokens < 1) throw limited(this.#byAddress.waitSeconds(ofAddress));
    const ofAgent = this.#byAgent.at(`${agent.toLowerCase()} ${address}`, now);
    if (ofAgent.tokens < 1) throw limited(this.#byAgent.waitSeconds(ofAgent));
    const buckets = [ofAddress, ofAgent];
    if (buckets.some(({ tokens, pending }) => tokens - pending < 1)) return null;
    for (const bucket of buckets) bucket.pending += 1;
    return (hasFailed) => this.#settle(buckets, hasFailed);
  }

  #settle(buckets: readonly Bucket[], hasFailed: boolean): void {
    for (const bucket of buckets) {
      bucket.pending -= 1;
      if (hasFailed) bucket.tokens -= 1;
    }
    this.#settled.resolve();
    this.#settled = Promise.withResolvers<void>();
  }
}

function limited(seconds: number): ApiError {
  return new ApiError('RATE_LIMITED', `Too many failed logins from this address. Try again in ${seconds} s.`, seconds);
}

/** An IPv4 address as it is; of an IPv6 address the first 64 bits, which one host has to itself. */
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
