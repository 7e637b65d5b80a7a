/**
 * Limits the sessions, leases and value bytes that one agent may add to the database in an hour, so that no agent fills
 * the disk: token buckets per agent, in this node's memory. Rejected requests are not charged. The administrator is not
 * limited.
 */
import { ApiError } from '../core/errors.ts';
import { FifoCache } from '../core/fifo-cache.ts';
import type { AgentName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';

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
const MAX_AGENTS = 20_000;

interface Bucket {
  tokens: number;
  /** The time at which `tokens` was computed. */
  at: number;
}

class HourlyBudget {
  readonly #perHour: number;
  readonly #what: string;
  readonly #buckets = new FifoCache<AgentName, Bucket>();

  constructor(perHour: number, what: string) {
    this.#perHour = perHour;
    this.#what = what;
  }

  /** Runs the work and charges the amount, unless the work fails. @throws RATE_LIMITED with the seconds to wait */
  async charge<T>(agent: AgentName, amount: number, now: number, work: () => Promise<T>): Promise<T> {
    const bucket = this.#at(agent, now);
    if (bucket.tokens < 1) {
      const seconds = Math.ceil((((1 - bucket.tokens) / this.#perHour) * HOUR_MS) / 1000);
      throw new ApiError(
        'RATE_LIMITED',
        `The agent has used up its hourly budget of ${this.#what}. Try again later.`,
        seconds,
      );
    }
    bucket.tokens -= amount;
    try {
      return await work();
    } catch (error) {
      bucket.tokens += amount;
      throw error;
    }
  }

  #at(agent: AgentName, now: number): Bucket {
    let bucket = this.#buckets.get(agent);
    if (bucket === undefined) {
      bucket = { tokens: this.#perHour, at: now };
      this.#buckets.put(agent, bucket);
      if (this.#buckets.size > MAX_AGENTS) this.#buckets.evictOldest();
    }
    const earned = (Math.max(0, now - bucket.at) * this.#perHour) / HOUR_MS;
    bucket.tokens = Math.min(this.#perHour, bucket.tokens + earned);
    bucket.at = now;
    return bucket;
  }
}

export class AgentBudgets {
  readonly sessions: HourlyBudget;
  readonly leases: HourlyBudget;
  readonly storedBytes: HourlyBudget;

  constructor({ sessionsPerHour, leasesPerHour, storedMibPerHour }: BudgetLimits = DEFAULT_BUDGETS) {
    this.sessions = new HourlyBudget(sessionsPerHour, 'sessions');
    this.leases = new HourlyBudget(leasesPerHour, 'leases');
    this.storedBytes = new HourlyBudget(storedMibPerHour * BYTES_PER_MIB, 'stored bytes');
  }
}

/** As `charge`, for a caller that may be the administrator. */
export function withBudget<T>(
  budget: HourlyBudget,
  { authentication }: Pick<Context, 'authentication'>,
  amount: number,
  now: number,
  work: () => Promise<T>,
): Promise<T> {
  if (authentication.kind === 'admin') return work();
  return budget.charge(authentication.agentName, amount, now, work);
}
