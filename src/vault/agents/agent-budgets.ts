/**
 * Limits the sessions, leases and value bytes that one agent may add to the database in an hour, so that no agent fills
 * the disk: token buckets per agent, in this node's memory. Rejected requests are not charged. The administrator is not
 * limited.
 */

import { Counter } from '../../core/measures.ts';
import type { PrincipalName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { ApiError } from '../../engine/errors.ts';
import { TokenBuckets } from '../../ledger/token-buckets.ts';

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
  readonly #what: BudgetKind;
  readonly #rejections: Counter<BudgetKind>;

  constructor(perHour: number, what: BudgetKind, rejections: Counter<BudgetKind>) {
    this.#buckets = new TokenBuckets(perHour, HOUR_MS);
    this.#what = what;
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
      this.#rejections.add(this.#what);
      const message = `The agent has used up its hourly budget of ${this.#what}. Try again later.`;
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
