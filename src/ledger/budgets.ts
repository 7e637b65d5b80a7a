/**
 * Budgets of agents: sessions, leases and stored bytes in an hour, and recorded denials. Each is a token bucket per
 * agent in this node's memory, which refills over an interval. An evicted bucket is full again.
 */
import { LRUCache } from 'lru-cache';
import { resultOf } from '../core/denials.ts';
import { Counter } from '../core/measures.ts';
import { ADMIN, type PrincipalName, SERVICE } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { ApiError } from '../engine/errors.ts';
import type { EntryDraft } from '../vault/audit/audit-entry.ts';

const MAX_BUCKETS = 20_000;

export interface Bucket {
  /** It may be negative, because the last expense may be larger than the rest. */
  tokens: number;
  /** Tokens that work in progress may still spend. */
  reserved: number;
  /** The time at which `tokens` was computed. */
  at: number;
}

export class TokenBuckets {
  readonly #burst: number;
  readonly #intervalMs: number;
  /** WHY no `max`: a cache with one takes the memory of all its entries, half a MiB, while it is empty. */
  readonly #buckets = new LRUCache<string, Bucket>({ maxSize: MAX_BUCKETS, sizeCalculation: () => 1 });

  /** A key has `burst` tokens, and earns as many in `intervalMs`. */
  constructor(burst: number, intervalMs: number) {
    this.#burst = burst;
    this.#intervalMs = intervalMs;
  }

  /** The key's bucket with its tokens at `now`, in milliseconds. Keys with a burst of their own always give it. */
  at(key: string, now: number, burst = this.#burst): Bucket {
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: burst, reserved: 0, at: now };
      this.#buckets.set(key, bucket);
    }
    const earned = (Math.max(0, now - bucket.at) * burst) / this.#intervalMs;
    bucket.tokens = Math.min(burst, bucket.tokens + earned);
    bucket.at = now;
    return bucket;
  }

  waitSeconds({ tokens }: Bucket, burst = this.#burst): number {
    return Math.max(1, Math.ceil(((1 - tokens) * this.#intervalMs) / burst / 1000));
  }
}

// Limits the sessions, leases and value bytes that one agent may add to the database in an hour, so that no agent fills
// the disk. Rejected requests are not charged. The administrator is not limited.

export interface BudgetLimits {
  readonly sessionsPerHour: number;
  readonly leasesPerHour: number;
  readonly storedMibPerHour: number;
}

export const DEFAULT_BUDGETS: BudgetLimits = {
  sessionsPerHour: 100_000,
  leasesPerHour: 10_000_000,
  storedMibPerHour: 1024,
};

const HOUR_MS = 3_600_000;
const BYTES_PER_MIB = 1024 * 1024;

const BUDGET_KINDS = ['sessions', 'leases', 'stored bytes'] as const;
export type BudgetKind = (typeof BUDGET_KINDS)[number];

class HourlyBudget {
  readonly #buckets: TokenBuckets;
  readonly #kind: BudgetKind;
  readonly #rejections: Counter<BudgetKind>;

  constructor(perHour: number, kind: BudgetKind, rejections: Counter<BudgetKind>) {
    this.#buckets = new TokenBuckets(perHour, HOUR_MS);
    this.#kind = kind;
    this.#rejections = rejections;
  }

  /**
   * Runs the work and charges the amount, unless the work fails or `isSpent` denies it.
   * @throws RATE_LIMITED with the seconds to wait
   */
  async charge<T>(
    agent: PrincipalName,
    amount: number,
    now: number,
    work: () => Promise<T>,
    isSpent: (result: T) => boolean = () => true,
  ): Promise<T> {
    const bucket = this.#buckets.at(agent, now);
    if (bucket.tokens < 1) {
      this.#rejections.add(this.#kind);
      const message = `The agent has used up its hourly budget of ${this.#kind}. Try again later.`;
      throw new ApiError('RATE_LIMITED', message, this.#buckets.waitSeconds(bucket));
    }
    bucket.tokens -= amount;
    try {
      const result = await work();
      if (!isSpent(result)) bucket.tokens += amount;
      return result;
    } catch (error) {
      bucket.tokens += amount;
      throw error;
    }
  }
}

export class AgentBudgets {
  readonly sessions: HourlyBudget;
  readonly leases: HourlyBudget;
  readonly storedBytes: HourlyBudget;
  readonly rejections = new Counter<BudgetKind>(BUDGET_KINDS);

  constructor({ sessionsPerHour, leasesPerHour, storedMibPerHour }: BudgetLimits = DEFAULT_BUDGETS) {
    this.sessions = new HourlyBudget(sessionsPerHour, 'sessions', this.rejections);
    this.leases = new HourlyBudget(leasesPerHour, 'leases', this.rejections);
    this.storedBytes = new HourlyBudget(storedMibPerHour * BYTES_PER_MIB, 'stored bytes', this.rejections);
  }
}

/** Charges a caller that may be the administrator, who has no budget. */
export function withBudget<T>(
  budget: HourlyBudget,
  { auth }: Pick<Context, 'auth'>,
  amount: number,
  now: number,
  work: () => Promise<T>,
  isSpent?: (result: T) => boolean,
): Promise<T> {
  if (auth.kind === 'admin') return work();
  return budget.charge(auth.agentName, amount, now, work, isSpent);
}

// Limits the denials of one agent that are recorded, so that no agent fills the disk: a token bucket per agent, in this
// node's memory. Further requests are rejected and counted, but not recorded.

export const DENIALS_PER_MINUTE = 1200;

export class DenialBudget {
  readonly #buckets: TokenBuckets;
  #unrecordedDenials = 0;

  constructor(perMinute: number = DENIALS_PER_MINUTE) {
    this.#buckets = new TokenBuckets(perMinute, 60_000);
  }

  get unrecordedDenials(): number {
    return this.#unrecordedDenials;
  }

  /** Whether the entry is recorded; if not, it is counted. */
  admits(entry: EntryDraft, now: number): boolean {
    if (!isLimited(entry)) return true;
    const bucket = this.#buckets.at(budgetOf(entry), now);
    if (bucket.tokens < 1) {
      this.#unrecordedDenials += 1;
      return false;
    }
    bucket.tokens -= 1;
    return true;
  }
}

export function tooManyDenials(): ApiError {
  return new ApiError('RATE_LIMITED', 'Too many requests of this agent were denied. Try again in a second.', 1);
}

/**
 * WHY apart: a thief of an agent's token could otherwise use up the agent's budget, so that its own denials
 * are not recorded.
 */
const budgetOf = ({ eventType, agentName }: EntryDraft): string =>
  eventType === 'credential.misuse' ? `${agentName} ${eventType}` : agentName;

/** Failed logins have their own limit; the administrator and the server are not limited. */
function isLimited({ eventType, agentName, result }: EntryDraft): boolean {
  const isDenial = typeof result !== 'string' && resultOf(result) !== 'error';
  return isDenial && agentName !== ADMIN && agentName !== SERVICE && eventType !== 'auth.verify';
}
