/**
 * Bounds the approvals that one agent adds: how many wait at the same time, and how many rows and bytes they take in an
 * hour. What was added is charged whatever becomes of the request. SOURCE: docs/approvals.md, "Limits".
 */

import type { AgentId } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { ApiError } from '../../engine/errors.ts';
import type { Clock } from '../../ledger/clock.ts';
import { countApprovals } from '../../store/approval-lists.ts';
import type { Store } from '../../store/port.ts';
import { NEWEST_APPROVAL } from '../../store/queries.ts';
import { type AgentBudgets, withBudget } from '../agents/agent-budgets.ts';

/** Operators could not read more of one agent. */
const MAX_PENDING_OF_AGENT = 200;
/** Approximate size of the rows of an approval without the encrypted request. */
const ROWS_BYTES = 2048;
const RETRY_AFTER_SECONDS = 1;

export interface ApprovalAdmissionParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly budgets: AgentBudgets;
}

/** Work after which an approval with an encrypted request of that size may have been added. */
export interface AddingWork<R> {
  readonly requestBytes: number;
  run(): Promise<R>;
  /** Whether it was: another request of the agent may have added it before. */
  hasAdded(result: R): boolean;
}

export class ApprovalAdmission {
  readonly #parts: ApprovalAdmissionParts;
  /** The end of the last work of each agent. */
  readonly #ended = new Map<AgentId, Promise<void>>();

  constructor(parts: ApprovalAdmissionParts) {
    this.#parts = parts;
  }

  /**
   * Runs work that may add an approval. WHY one at a time for an agent: each has to see the rows of the ones before.
   * @throws RATE_LIMITED; what the work throws, which then is not charged
   */
  async run<R>(context: Context, agentId: AgentId, work: AddingWork<R>): Promise<R> {
    const own = (this.#ended.get(agentId) ?? Promise.resolve()).then(() => this.#admit(context, agentId, work));
    const ended = own.then(
      () => undefined,
      () => undefined,
    );
    this.#ended.set(agentId, ended);
    try {
      return await own;
    } finally {
      if (this.#ended.get(agentId) === ended) this.#ended.delete(agentId);
    }
  }

  async #admit<R>(context: Context, agentId: AgentId, { requestBytes, run, hasAdded }: AddingWork<R>): Promise<R> {
    const { store, clock, budgets } = this.#parts;
    const now = clock.now();
    const query = { agentId, agentName: null, status: 'pending' as const, now };
    const { count } = await store.run(countApprovals(store.dialect, query, NEWEST_APPROVAL, MAX_PENDING_OF_AGENT));
    if (count >= MAX_PENDING_OF_AGENT) {
      const message = `${MAX_PENDING_OF_AGENT} requests of this agent wait for approvals. Try again when some are answered.`;
      throw new ApiError('RATE_LIMITED', message, RETRY_AFTER_SECONDS);
    }
    const stored = () => withBudget(budgets.storedBytes, context, ROWS_BYTES + requestBytes, now, run, hasAdded);
    return withBudget(budgets.leases, context, 1, now, stored, hasAdded);
  }
}
